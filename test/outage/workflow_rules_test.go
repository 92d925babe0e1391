package outage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// ruled applies a workflow of which each job of the step fit but the first never ends, and returns what waits for it.
func (o outage) ruled(
	name, spec, first string,
) (until func(string, func(v1alpha1.HTCWorkflowStatus) bool) *v1alpha1.HTCWorkflow) {
	o.T.Helper()
	client, err := v1alpha1.NewClient(trial.Config(o.T))
	require.NoError(o.T, err)
	text := fmt.Sprintf(`{apiVersion: htc.cern.ch/v1alpha1, kind: HTCWorkflow, metadata: {name: %s}, spec: {%s, steps: [
		{name: fit, job: {script: {image: centos, command: sh, source: %q}}}]}}`, name, spec, "[ $jobid = job_0 ] || exec sleep 3000; "+first)
	o.ApplyText(text)
	return func(wanted string, is func(v1alpha1.HTCWorkflowStatus) bool) *v1alpha1.HTCWorkflow {
		o.T.Helper()
		var w *v1alpha1.HTCWorkflow
		o.Eventually(func() bool {
			w, err = client.Workflows(o.Namespace).Get(o.T.Context(), name, metav1.GetOptions{})
			return err == nil && is(w.Status)
		}, func() string { return fmt.Sprintf("%s is not %s: %+v", name, wanted, w.Status) })
		return w
	}
}

// decidedWhileFrozen lets a rule decide while the schedd does not answer, kills htcd before it can act, and starts both
// again. The results come when measure is called.
func (o outage) decidedWhileFrozen(w *v1alpha1.HTCWorkflow, measure func()) {
	o.T.Helper()
	o.do(o.part("schedd").Freeze)
	measure()
	o.Eventually(func() bool { return o.acts(w) == "1" }, func() string { return "no rule has acted: " + o.log() })
	o.killHtcd()
	o.do(o.part("schedd").Thaw)
	o.do(o.part("htcd").Start)
}

// acts returns how many rules of a workflow have acted.
func (o outage) acts(w *v1alpha1.HTCWorkflow) string {
	return o.SQL(
		fmt.Sprintf(
			`SELECT coalesce(sum(acts), 0) FROM rules WHERE run IN (SELECT id FROM runs WHERE uid = '%s')`,
			w.UID,
		),
	)
}

func TestARuleThatHasFinishedAWorkflowDoesSoAfterHtcdWasKilled(t *testing.T) {
	o := begin(t)
	wait, measure := o.Gate()
	until := o.ruled(
		"finished",
		`sequences: {count: 3}, rules: [{step: fit, metric: chi2, function: max, when: "value > 6.5", action: Finish}]`,
		wait+"echo chi2=7 > $HTC_RESULTS",
	)
	w := until("running", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Nodes.Running == 3 })
	o.decidedWhileFrozen(w, measure)
	w = until("ended", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Phase.Terminal() })
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 3, Done: 1, Futile: 2}, w.Status.Nodes)
	require.Equal(t, "1", o.acts(w))
	o.Event("finished", "it is 7, of 1 result; what is left of the sequences is no longer needed")
}

func TestResultsWhoseCallbacksAreLostComeWithTheOutput(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 10s", "--callback-deadline=5s")
	o.do(o.part("receiver-net").Stop)
	until := o.ruled("silent", "alwaysSucceed: []", "echo chi2=2.5 > $HTC_RESULTS; exit 3")
	w := until("measured", func(s v1alpha1.HTCWorkflowStatus) bool {
		return s.Phase.Terminal() && len(s.Metrics) == 1 &&
			meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionOutputFetched)
	})
	require.Equal(
		t,
		[]v1alpha1.MetricStatus{{Step: "fit", Metric: "chi2", Count: 1, Mean: 2.5, Min: 2.5, Max: 2.5}},
		w.Status.Metrics,
	)
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase, "a failed job measures, too")
}

func TestARuleThatHasGrownAWorkflowDoesSoAfterHtcdWasKilled(t *testing.T) {
	o := begin(t)
	wait, measure := o.Gate()
	until := o.ruled(
		"grown",
		`sequences: {count: 6, maxConcurrent: 2}, rules: [{step: fit, metric: chi2, function: max, when: "value > 6.5", action: Grow, by: 4}]`,
		wait+"echo chi2=7 > $HTC_RESULTS",
	)
	w := until("running", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Nodes.Running == 2 })
	o.decidedWhileFrozen(w, measure)
	w = until("grown", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Nodes.Running == 5 && s.MaxConcurrent == 6 })
	require.Equal(t, "1", o.acts(w))
	o.Event("grown", "sequences.maxConcurrent is 6 now, instead of 2")
}
