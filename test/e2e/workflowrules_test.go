//go:build !releases

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// metric returns that of a step in the status.
func metric(w *v1alpha1.HTCWorkflow, step, name string) v1alpha1.MetricStatus {
	for _, m := range w.Status.Metrics {
		if string(m.Step) == step && m.Metric == name {
			return m
		}
	}
	return v1alpha1.MetricStatus{}
}

func TestResultsOfScriptsAreSummedUp(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "measured", `
  sequences: {count: 5}
  steps:
  - name: fit
    job: {script: {image: centos, command: bash, source: "n=${jobid#job_}; echo chi2=$((n * n)) >> $HTC_RESULTS; echo not a number >> $HTC_RESULTS; echo up=1e2 >> $HTC_RESULTS"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	w = f.until("summed up", func(w *v1alpha1.HTCWorkflow) bool { return metric(w, "fit", "chi2").Count == 5 })
	require.Equal(
		t,
		v1alpha1.MetricStatus{
			Step:     "fit",
			Metric:   "chi2",
			Count:    5,
			Mean:     6,
			Variance: 43.5,
			Min:      0,
			Max:      16,
			IQR:      8,
			MAD:      4,
		},
		metric(w, "fit", "chi2"),
	)
	require.Equal(t, 100.0, metric(w, "fit", "up").Mean)
	f.Event(f.name, "expected name=number")
	require.NoFileExists(
		t,
		f.Lab.Path("htcd", "data", "workflows", f.Namespace, f.name, "1", "fit", "job_0", ".htcd-results"),
	)
}

func TestARuleFinishesAWorkflow(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "finished", `
  sequences: {count: 4}
  rules:
  - {step: fit, metric: chi2, function: mean, when: "value > 2.0 && value < 4", minCount: 2, action: Finish}
  steps:
  - name: fit
    job: {script: {image: centos, command: bash, source: "case $jobid in job_[01]) echo chi2=3 > $HTC_RESULTS ;; *) sleep 3000 ;; esac"}}
  - name: plot
    pairing: All
    job: {script: {image: centos, command: sh, source: "true"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status.Conditions)
	require.EqualValues(t, 2, w.Status.Sequences.Succeeded)
	require.Equal(t, v1alpha1.NodeCounts{Total: 5, Done: 3, Futile: 2}, w.Status.Nodes)
	f.Event(f.name, "rule 1 (mean of fit.chi2, value > 2.0 && value < 4): it is 3, of 2 results; what is left")
}

// The first sequence ends at once, so that Grow acts; then three run, so that Shrink does.
func TestRulesGrowAndShrinkAWorkflow(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "growing", `
  sequences: {count: 8, maxConcurrent: 1}
  rules:
  - {step: wait, metric: success, when: "value >= 1", action: Grow, by: 5, max: 3}
  - {metric: running, when: "value == 3", action: Shrink, by: 2}
  steps:
  - name: wait
    job: {script: {image: centos, command: bash, source: "[ $jobid = job_0 ] || sleep 3000"}}
`)
	w := f.until("shrunk", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.MaxConcurrent == 1 })
	require.EqualValues(t, 3, w.Status.Nodes.Running)
	f.Event(f.name, "rule 1 (wait.success, value >= 1): it is 1; sequences.maxConcurrent is 3 now, instead of 1")
	f.Event(f.name, "rule 2 (running, value == 3): it is 3; sequences.maxConcurrent is 1 now, instead of 3")
	dag := fmt.Sprintf("HTCJobUID =?= %q && JobStatus == 2", w.UID)
	f.Eventually(func() bool {
		jobs := f.Condor("condor_q", dag, "DAGMan_MaxJobs", "Arguments")
		return len(jobs) == 1 && jobs[0] == w.Status.JobID[0]+" 1 1"
	}, func() string { return fmt.Sprint(f.Condor("condor_q", dag, "DAGMan_MaxJobs", "Arguments")) })
	nodes := fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID)
	are := func(queue, gone int) func() bool {
		return func() bool {
			n := len(f.Condor("condor_q", nodes+" && JobStatus < 3"))
			require.LessOrEqual(t, n, 3, "never more than Grow allows")
			return n == queue && len(f.Condor("condor_history", nodes)) == gone
		}
	}
	said := func() string {
		return fmt.Sprint(f.Condor("condor_q", nodes, "HTCNode"), f.Condor("condor_history", nodes, "HTCNode"))
	}
	// What runs is left alone, and nothing follows until there is room again.
	for _, n := range []string{"1", "2", "3"} {
		_, err := f.Lab.Run(t.Context(), "condor_rm", "-constraint", nodes+" && HTCNode == "+n)
		require.NoError(t, err)
	}
	f.Eventually(are(1, 4), said)
	f.until(
		"so",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Failed == 3 && w.Status.Nodes.Running == 1 },
	)
	require.True(t, are(1, 4)(), said())
	f.gone(w)
}

// The result of the third sequence is never good.
func TestARuleRepeatsStepsOfSequences(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "again", `
  sequences: {count: 3}
  rules:
  - {step: fit, metric: chi2, when: "value > 2", action: Repeat}
  steps:
  - name: make
    job: {script: {image: centos, command: bash, source: "echo $jobid $RANDOM$RANDOM >made"}}
  - name: fit
    pull: [{from: make, path: made}]
    job: {script: {image: centos, command: bash, source: "cat made >fit; echo run >>fit; echo chi2=${jobid#job_} >$HTC_RESULTS; [ $jobid = job_2 ] && echo chi2=3 >$HTC_RESULTS; true"}, outputs: [{path: fit}]}
  - name: keep
    pull: [{from: fit, path: fit}]
    job: {script: {image: centos, command: bash, source: "cp fit kept"}, outputs: [{path: kept}]}
  - name: all
    pairing: All
    pull: [{from: keep, path: kept}]
    job: {script: {image: centos, command: bash, source: "cat job_*/kept"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status.Conditions)
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 10}, w.Status.Nodes)
	require.Equal(t, v1alpha1.SequenceCounts{Total: 3, Succeeded: 3}, w.Status.Sequences)
	require.Len(t, w.Status.JobID, 3, "once, and then what is for all")
	f.until("summed up", func(w *v1alpha1.HTCWorkflow) bool { return metric(w, "fit", "chi2").Count == 3 })
	f.Event(f.name, "rule 1 (fit.chi2, value > 2): it is 3 in job_2; 1 sequence again from fit on")
	made := f.output(w, "make/job_2", "made")
	require.Equal(t, made+"run\n", f.output(w, "keep/job_2", "kept"), "what is not repeated stays as it is")
	ran := f.Condor("condor_history", fmt.Sprintf("HTCWorkflowUID =?= %q && HTCWorkflowDAG == 2", w.UID))
	require.Len(t, ran, 2, "fit and keep of job_2")
	f.gone(w)
}
