package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestArgumentsReachTheScriptInItsContainer(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	odd := []string{"", "-n", "a b", `'"\`, "$HOME `id`", "x\ny\n", "ä*", "{{other}}"}
	b.Script("args", `printf '<%s>' "$@"`, func(job *v1alpha1.HTCJob) {
		job.Spec.Script.Args = append(odd, "{{cluster}}.{{proc}}", "--seed={{item.SEED}}")
		job.Spec.Items = []v1alpha1.Item{{"SEED": "7"}, {"SEED": "$8 '"}}
	})
	flow := flowIn(b, "args", `
  sequences: {items: [{MASS: "12 5"}]}
  steps:
  - name: a
    forEach: {count: 2}
    job:
      script: {image: centos, command: bash, source: "printf '<%s>' \"$@\"", args: ["{{item.jobid}}", "{{proc}}", "{{item.MASS}}"]}
`)
	job := b.Ended("args")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	common := "<" + strings.Join(odd, "><") + "><"
	require.Equal(t, common+job.Status.JobID[0]+"><--seed=7>", b.Output(job, 0))
	require.Equal(t, common+job.Status.JobID[1]+"><--seed=$8 '>", b.Output(job, 1))
	w := flow.ended()
	require.Equal(t, "<job_0><1><12 5>", flow.output(w, "a/job_0/1", "_condor_stdout"))
}
