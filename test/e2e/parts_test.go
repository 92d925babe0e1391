package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestWhatRunsBeforeAndAfterAScriptDecides(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script(
		"forgiven",
		"echo script $1 $A; cat prepared /tmp/mine; echo made > made; kill -9 $$",
		func(job *v1alpha1.HTCJob) {
			job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{"A": "a b"}
			job.Spec.Script.Before = &v1alpha1.ScriptPart{
				Source: "echo before $A; echo prepared | tee prepared > /tmp/mine",
			}
			job.Spec.Script.After = &v1alpha1.ScriptPart{
				Command: "sh -e", Args: []string{"{{item.N}}", "it's"},
				Source: `echo after $RETURN "$@" $A; cat made; [ $RETURN = 137 ]; echo checked > checked`,
			}
			job.Spec.Items = []v1alpha1.Item{{"N": "1"}, {"N": "2"}}
		},
	)
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
	require.Contains(
		t,
		job.Status.Failures[0].Stderr,
		"htcd: script.before has ended with the return code 3: the script was not run",
	)
	require.Empty(t, b.Output(job, 0))

	w := flow.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Len(t, w.Status.Failures, 1)
	require.Equal(t, "use/job_0", w.Status.Failures[0].Node)
	require.Equal(t, int32(9), *w.Status.Failures[0].ExitCode)
	require.Contains(t, w.Status.Failures[0].Stderr, "script.before has ended with the return code 9")
	require.Equal(t, "good\n", flow.output(w, "make/job_0", "result"))
}

// What interrupts a job is no end of it, whatever of it runs, and what is kept until it goes on is as without what runs
// before and after.
func TestWhatRunsBeforeAndAfterAScriptIsInterrupted(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	around := func(before, after string) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Spec.Script.Before, job.Spec.Script.After = &v1alpha1.ScriptPart{
				Source: before,
			}, &v1alpha1.ScriptPart{
				Source: after,
			}
		}
	}
	checkpointed := func(job *v1alpha1.HTCJob) {
		job.Spec.Checkpoint = &v1alpha1.Checkpoint{ExitCode: 85, Files: []v1alpha1.CheckpointFile{"state"}}
	}
	// Evicted after the first and the second checkpoint, it ends on the machine on which it has written the third.
	marked(b, "m", "secret=pass")
	moves := "moves-" + b.Namespace + "-"
	b.Script("moves", fmt.Sprintf(`n=$(cat state/n || echo 0)
echo script $n
[ $n -lt 3 ] || exit 3
if [ -e here ]; then touch %s$n; sleep 600; fi
touch here
mkdir -p state; echo $((n + 1)) >state/n
exit 85
`, moves), around(
		"echo before $(cat state/n $HTC_CREDENTIALS/mine secret)",
		"echo after $RETURN $(cat $HTC_CREDENTIALS/mine); mv state/n final; rm here; exit 5",
	), checkpointed, inputs(fromSecret("secret", "m", "secret")), credentials("mine m secret File"), retries(1), codes(0, 5))
	// Each job is evicted once, while the part AT runs.
	part := func(name string) string {
		return fmt.Sprintf(`mkdir -p state; echo %[1]s $RETURN >>state/trail
if [ $AT = %[1]s ] && %[2]s; then trap 'echo asked >>state/trail; exit 0' TERM; touch busy-$AT-%[3]s; sleep 600 & wait; fi
`, name, firstStart, b.Namespace)
	}
	b.Script(
		"asked",
		part("script"),
		around(part("before"), part("after")+"mv state/trail trail"),
		func(job *v1alpha1.HTCJob) {
			job.Spec.Items = []v1alpha1.Item{{"AT": "before"}, {"AT": "script"}, {"AT": "after"}}
			job.Spec.Parallelism = new(int32(3))
			job.Spec.Checkpoint = &v1alpha1.Checkpoint{OnEviction: true}
			job.Spec.Outputs = []v1alpha1.Output{{Path: "state"}, {Path: "trail"}}
		},
	)
	b.Script("root", `test ! -e made || exit 9
echo script >made
mkdir -p $outpath/state; echo >>$outpath/state/n
[ $(wc -l <$outpath/state/n) = 2 ] || exit 85
until [ -s told ]; do sleep 0.2; done
cat told
`, around("pwd; echo before >made", "test ! -e made"), checkpointed, func(job *v1alpha1.HTCJob) {
		job.Spec.Script.WritableRoot, job.Spec.Script.Workdir = true, "/usr/share"
	})

	var out string
	var err error
	b.Eventually(func() bool {
		out, err = b.Lab.Run(t.Context(), "htcd", "exec", "root", "-n", b.Namespace, "--",
			"sh", "-c", "[ $(wc -l <$outpath/state/n) = 2 ] && cat made >told && pwd")
		return err == nil
	}, func() string { return fmt.Sprint(out, err) })
	require.Equal(t, "/usr/share\n", out)
	jobOf := func(file string) string {
		ad := ofProcess(b, wrapper(b, file), "cwd/.job.ad")
		return field(ad, "ClusterId") + "." + field(ad, "ProcId")
	}
	for _, at := range []string{"before", "script", "after"} {
		evictions["condor_vacate_job"](b, 0, jobOf("busy-"+at+"-"+b.Namespace))
	}
	evictions["condor_vacate_job"](b, 0, jobOf(moves+"1"))
	evictions["condor_vacate_job -fast"](b, 0, jobOf(moves+"2"))

	job := b.Ended("root")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "%+v", job.Status.Failures)
	require.Equal(t, "/usr/share\nscript\n", b.Output(job, 0))
	job = b.Ended("moves")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "%+v", job.Status.Failures)
	require.Equal(t, `before passpass
script 0
before 1 passpass
script 1
before 2 passpass
script 2
script 3
after 3 pass
`, b.Output(job, 0))
	require.Equal(t, []string{"_condor_stderr", "_condor_stdout", "final"}, b.Files(job, 0))
	job = b.Ended("asked")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "%+v", job.Status.Failures)
	whole := "before\nscript\nafter 0\n"
	for proc, first := range []string{"before\nasked\n", "before\nscript\nasked\n", "before\nscript\nafter 0\nasked\n"} {
		require.Equal(t, first+whole, b.File(b.Fetched("asked"), proc, "trail"))
	}
}
