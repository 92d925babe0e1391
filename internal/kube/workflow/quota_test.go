package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestAQuotaIsAskedForTheWidestLevel(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*v1alpha1.HTCWorkflow)
		jobs   int
	}{
		"each sequence has a job": {func(*v1alpha1.HTCWorkflow) {}, 2},
		"or several":              {func(w *v1alpha1.HTCWorkflow) { w.Spec.Steps[0].ForEach = &v1alpha1.ForEach{Count: 5} }, 10},
		"no more than its throttle": {func(w *v1alpha1.HTCWorkflow) {
			w.Spec.Sequences.Count, w.Spec.Throttle = new(int32(90)), &v1alpha1.Throttle{MaxJobs: new(int32(7))}
		}, 7},
		"no more than are at work": {func(w *v1alpha1.HTCWorkflow) {
			w.Spec.Sequences.Count, w.Spec.Sequences.MaxConcurrent = new(int32(90)), new(int32(4))
		}, 4},
		"a step for all may be the widest": {func(w *v1alpha1.HTCWorkflow) { w.Spec.Steps[1].ForEach = &v1alpha1.ForEach{Count: 6} }, 6},
		"one, where a table says how many": {func(w *v1alpha1.HTCWorkflow) {
			w.Spec.Sequences = &v1alpha1.Sequences{ItemsFrom: &v1alpha1.ItemsFrom{}}
		}, 1},
		"or the throttle where that is set": {func(w *v1alpha1.HTCWorkflow) {
			w.Spec.Sequences, w.Spec.Throttle =
				&v1alpha1.Sequences{ItemsFrom: &v1alpha1.ItemsFrom{}}, &v1alpha1.Throttle{MaxJobs: new(int32(7))}
		}, 7},
	} {
		require.Equal(t, c.jobs, newSituation(t, c.change).demand().Jobs, what)
	}
	asks := newSituation(t, func(w *v1alpha1.HTCWorkflow) {
		w.Spec.Steps[0].Job.Resources = &v1alpha1.Resources{
			CPUs:   new(resource.MustParse("4")),
			Memory: new(resource.MustParse("1Gi")),
		}
		w.Spec.Finally.Job.Resources = &v1alpha1.Resources{
			CPUs:   new(resource.MustParse("2")),
			Memory: new(resource.MustParse("3Gi")),
		}
	}).together().Spec.Resources
	require.Equal(t, []string{"4", "3Gi"}, []string{asks.CPUs.String(), asks.Memory.String()})
	asks = newSituation(t, func(w *v1alpha1.HTCWorkflow) {
		w.Spec.Steps[0].Job.Nodes = new(int32(4))
		w.Spec.Steps[0].Job.Resources = &v1alpha1.Resources{Memory: new(resource.MustParse("1Gi"))}
		w.Spec.Finally.Job.Resources = &v1alpha1.Resources{CPUs: new(resource.MustParse("2"))}
	}).together().Spec.Resources
	require.Equal(t, []string{"4", "4Gi"}, []string{asks.CPUs.String(), asks.Memory.String()}, "on all nodes together")
}

func TestAQuotaIsGivenBackAsNodesEnd(t *testing.T) {
	many := func(w *v1alpha1.HTCWorkflow) { w.Spec.Sequences.Count = new(int32(10)) }
	s := newSituation(t, many).with(of(0, ledger.Counts{Active: 10}))
	all := lifecycle.Demand{Of: s.Workflow.SpecHash() + " ", Jobs: 10, Left: 12, Alive: true, Sent: true}
	require.Equal(t, all, s.demand())
	s = newSituation(t, many).with(of(0, ledger.Counts{Active: 3, Succeeded: 6, Failed: 1}))
	require.Equal(t, 5, s.demand().Left, "three, the step for all, and finally may still run")
	s.DAGs[0].Run.Stop = crosscheck.StopSuspended
	require.Equal(t, 10, s.demand().Left, "all runs again")
	s = newSituation(t, many, func(w *v1alpha1.HTCWorkflow) {
		w.Spec.Rules = []v1alpha1.Rule{{Step: "a", Action: v1alpha1.ActionRepeat, Metric: "failure", When: "value > 0"}}
	}).with(of(0, ledger.Counts{Active: 3, Succeeded: 6, Failed: 1}))
	require.Equal(t, 10, s.demand().Left, "some may run again")

	s = newSituation(t).with(of(0, ledger.Counts{Succeeded: 2}), of(1, ledger.Counts{Succeeded: 1}))
	require.False(t, s.demand().Alive)
	require.False(t, s.demand().Over, "finally is still to come")
	s = newSituation(t).with(of(0, ledger.Counts{Succeeded: 2}), of(1, ledger.Counts{Succeeded: 1}),
		of(2, ledger.Counts{Succeeded: 1}))
	d := s.demand()
	require.Equal(t, []bool{true, true, false}, []bool{d.Over, d.Succeeded, d.Told})
}

// quota is one that says the same of all.
type quota struct{ says *lifecycle.Quota }

func (q *quota) Of(*v1alpha1.HTCJob, func() lifecycle.Demand) *lifecycle.Quota { return q.says }

func (*quota) Keep(context.Context, *v1alpha1.HTCJob, lifecycle.Demand) error { return nil }

func TestAWorkflowWaitsForQuotaAndLosesIt(t *testing.T) {
	w := newWorld(t)
	waits := &lifecycle.Quota{
		Waits:   true,
		Stops:   true,
		Reason:  lifecycle.ReasonQuotaAwaited,
		Message: "it waits in a queue",
	}
	q := &quota{waits}
	w.Quota = q
	w.restart()
	flow := w.apply(newWorkflow("one"))
	require.Equal(t, v1alpha1.PhaseSuspended, flow.Status.Phase)
	reason, message := w.says("one", v1alpha1.ConditionSubmitted)
	require.Equal(t, []string{lifecycle.ReasonQuotaAwaited, "it waits in a queue"}, []string{reason, message})
	require.Empty(t, flow.Status.JobID)

	q.says = &lifecycle.Quota{Most: 2}
	w.QuotaChanged("")
	w.later(time.Minute)
	flow = w.flow("one")
	require.Len(t, flow.Status.JobID, 1)
	require.EqualValues(t, 1, flow.Status.Attempt)

	q.says = waits
	w.QuotaChanged("default/one")
	for range 3 {
		w.later(time.Minute)
	}
	flow = w.flow("one")
	require.Equal(t, v1alpha1.PhaseSuspended, flow.Status.Phase)
	require.False(t, flow.Spec.Suspend, "the user's own field")

	q.says = &lifecycle.Quota{Most: 2}
	w.QuotaChanged("")
	w.later(time.Minute)
	require.EqualValues(t, 2, w.flow("one").Status.Attempt)
}
