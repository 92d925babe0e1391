package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestWhatRunsBeforeAndAfterAScriptDecides(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("forgiven", "echo script $1 $A; cat prepared /tmp/mine; echo made > made; kill -9 $$", func(job *v1alpha1.HTCJob) {
		job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{"A": "a b"}
		job.Spec.Script.Before = &v1alpha1.ScriptPart{Source: "echo before $A; echo prepared | tee prepared > /tmp/mine"}
		job.Spec.Script.After = &v1alpha1.ScriptPart{
			Command: "sh -e", Args: []string{"{{item.N}}", "it's"},
			Source: `echo after $RETURN "$@" $A; cat made; [ $RETURN = 137 ]; echo checked > checked`,
		}
		job.Spec.Items = []v1alpha1.Item{{"N": "1"}, {"N": "2"}}
	})
	b.Script("prepared", "echo script", func(job *v1alpha1.HTCJob) {
		job.Spec.SuccessExitCodes = []int32{0, 3}
		job.Spec.Script.Before = &v1alpha1.ScriptPart{Source: "exit 3"}
		job.Spec.Script.After = &v1alpha1.ScriptPart{Source: "echo after"}
	})
	flow := flowIn(b, "checked", `
  steps:
  - name: make
    retries: 2
    retryExitCodes: [7]
    job:
      script:
        {image: centos, command: bash, source: "echo good > result", after: {source: "[ $HTC_RETRY = 1 ] || exit 7"}}
      outputs: [{path: result}]
  - name: use
    pull: [{from: make, path: result}]
    job:
      script: {image: centos, command: bash, source: "echo used", before: {source: "grep bad result || exit 9"}}
`)
	_, err := b.Lab.RunInput(t.Context(), `apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata: {name: wide}
spec: {nodes: 2, script: {image: centos, command: bash, source: "true", after: {source: "true"}}}
`, "kubectl", "-n", b.Namespace, "apply", "-f", "-")
	require.ErrorContains(t, err, "script.before and script.after are for jobs of one machine")

	job := b.Ended("forgiven")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "%+v", job.Status.Failures)
	require.Equal(t, "before a b\nscript 1 a b\nprepared\nprepared\nafter 137 2 it's a b\nmade\n", b.Output(job, 1))
	require.Equal(t, []string{"_condor_stderr", "_condor_stdout", "checked", "made", "prepared"}, b.Files(job, 1))

	job = b.Ended("prepared")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, int32(1), *job.Status.Failures[0].ExitCode, "3 would be a success")
	require.Contains(t, job.Status.Failures[0].Stderr, "htcd: script.before has ended with the return code 3: the script was not run")
	require.Empty(t, b.Output(job, 0))

	w := flow.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Len(t, w.Status.Failures, 1)
	require.Equal(t, "use/job_0", w.Status.Failures[0].Node)
	require.Equal(t, int32(9), *w.Status.Failures[0].ExitCode)
	require.Contains(t, w.Status.Failures[0].Stderr, "script.before has ended with the return code 9")
	require.Equal(t, "good\n", flow.output(w, "make/job_0", "result"))
}
