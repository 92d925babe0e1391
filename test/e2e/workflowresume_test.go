package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// resuming has a step that fails in two sequences of three, between one that it pulls from and others that pull from
// both. What `made` and `plot` write differs in each run.
const resuming = `
  resume: FromFailure
  sequences: {count: 3}
  steps:
  - name: generate
    job: {script: {image: centos, command: sh, source: "echo $jobid >made; cat /proc/sys/kernel/random/uuid | tee -a made"}}
  - name: fit
    pull: [{from: generate, path: made}]
    job: {script: {image: centos, command: sh, source: "cat made; head -n 1 made >fitted; %s"}}
  - name: merge
    needs: [fit, generate]
    pull: [{from: generate, path: made}, {from: fit, path: fitted}]
    job: {script: {image: centos, command: sh, source: "cat made fitted; cat fitted >merged"}}
  - name: plot
    pairing: All
    needs: [merge]
    pull: [{from: merge, path: merged}, {from: generate, path: made}]
    job: {script: {image: centos, command: sh, source: "cat job_*/merged job_*/made; cat /proc/sys/kernel/random/uuid"}}
`

// again edits the script of the workflow's second step and waits for the end of the new attempt.
func (f *flow) again(source string, attempt int) *v1alpha1.HTCWorkflow {
	f.T.Helper()
	f.Kubectl(
		"patch",
		"htcworkflow",
		f.name,
		"--type=json",
		"-p",
		fmt.Sprintf(`[{"op": "replace", "path": "/spec/steps/1/job/script/source", "value": %q}]`, source),
	)
	f.until("in its next attempt", func(w *v1alpha1.HTCWorkflow) bool { return int(w.Status.Attempt) == attempt })
	return f.ended()
}

func TestAWorkflowIsResumedFromWhatHasFailed(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "resumed", fmt.Sprintf(resuming, "test $jobid = job_1"))
	first := f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, first.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 6, Failed: 2, Futile: 2}, first.Status.Nodes)
	made := f.output(first, "generate/job_0", "_condor_stdout")
	ran := func() []string {
		return f.Condor("condor_history", fmt.Sprintf("HTCWorkflowUID =?= %q", first.UID), "HTCNode")
	}
	before := len(ran())

	// One more sequence can be run to its end, the other fails again.
	second := f.again("cat made; head -n 1 made >fitted; test $jobid != job_2", 2)
	require.Equal(t, v1alpha1.PhaseFailed, second.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 8, Failed: 1, Futile: 1}, second.Status.Nodes)
	require.Equal(t, v1alpha1.SequenceCounts{Total: 3, Succeeded: 2, Failed: 1}, second.Status.Sequences)
	require.Equal(t, made, f.output(second, "generate/job_0", "_condor_stdout"), "it was not run again")
	merged := f.output(second, "merge/job_0", "_condor_stdout")
	require.Equal(t, "job_0\n"+made+"job_0\n", merged, "it has got what was kept")
	require.Greater(t, len(ran()), before)

	// A resume of a resume.
	third := f.again("cat made; head -n 1 made >fitted", 3)
	require.Equal(t, v1alpha1.PhaseSucceeded, third.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 10}, third.Status.Nodes)
	require.Equal(t, made, f.output(third, "generate/job_0", "_condor_stdout"))
	require.Equal(t, merged, f.output(third, "merge/job_0", "_condor_stdout"))
	plotted := f.output(third, "plot/all", "_condor_stdout")
	require.Contains(t, plotted, made)

	// Everything is done: nothing runs again.
	all := len(ran())
	f.Kubectl("annotate", "htcworkflow", f.name, "htc.cern.ch/rerun=once more")
	f.until("in its next attempt", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Attempt == 4 })
	fourth := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, fourth.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 10}, fourth.Status.Nodes)
	require.Equal(t, plotted, f.output(fourth, "plot/all", "_condor_stdout"))
	require.Len(t, ran(), all)

	// All begins from the start.
	f.Kubectl("patch", "htcworkflow", f.name, "--type=merge", "-p", `{"spec": {"resume": "All"}}`)
	f.Kubectl("annotate", "--overwrite", "htcworkflow", f.name, "htc.cern.ch/rerun=anew")
	f.until("in its next attempt", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Attempt == 5 })
	fifth := f.ended()
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 10}, fifth.Status.Nodes)
	require.NotEqual(t, made, f.output(fifth, "generate/job_0", "_condor_stdout"))
	f.gone(fifth)
}
