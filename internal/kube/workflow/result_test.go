package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

func stored(d *DAG) {
	d.Run.OutputDir, d.Job = "/output/default/w/1", &ledger.Proc{Fetched: ledger.IsFetched}
}

func TestSuccessOfAWorkflowWaitsForTheOutputIfItIsToldTo(t *testing.T) {
	asked := func(w *v1alpha1.HTCWorkflow) { w.Spec.CompleteAfterOutput = true }
	two, one := ledger.Counts{Succeeded: 2}, ledger.Counts{Succeeded: 1}
	for name, c := range map[string]struct {
		s    Situation
		here bool
		want v1alpha1.Phase
	}{
		"its output is on its way":          {newSituation(t, asked).with(of(0, two), of(1, one), of(2, one)), false, v1alpha1.PhaseRunning},
		"all of it is here, or never comes": {newSituation(t, asked).with(of(0, two), of(1, one), of(2, one)), true, v1alpha1.PhaseSucceeded},
		"it was not asked for":              {newSituation(t).with(of(0, two), of(1, one), of(2, one)), false, v1alpha1.PhaseSucceeded},
		"finally has failed":                {newSituation(t, asked).with(of(0, two), of(1, one), of(2, ledger.Counts{Failed: 1})), false, v1alpha1.PhaseFailed},
		"finally waits":                     {newSituation(t, asked).with(of(0, two), of(1, one), of(2, ledger.Counts{Active: 1})), false, v1alpha1.PhaseIdle},
	} {
		c.s.Unfetched = !c.here
		status := newStatus(c.s, lifecycle.View{})
		require.Equal(t, c.want, status.Phase, name)
		complete := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionComplete)
		require.Equal(t, c.want == v1alpha1.PhaseSucceeded, complete, name)
		if c.want == v1alpha1.PhaseRunning {
			require.Equal(t, "4 nodes succeeded; spec.completeAfterOutput waits for their output", status.Message)
			require.Nil(t, status.ExitCode)
		}
	}
}

func TestAResultOfTheLastStepIsReadWhenAllOfItIsHere(t *testing.T) {
	two, one := ledger.Counts{Succeeded: 2}, ledger.Counts{Succeeded: 1}
	always := func(w *v1alpha1.HTCWorkflow) {
		w.Spec.Steps[1].ForEach = &v1alpha1.ForEach{Count: 2}
		w.Spec.Steps[1].MaxFailures = new(intstr.FromInt32(1))
	}
	for name, c := range map[string]struct {
		s    Situation
		want bool
	}{
		"all is here":                  {newSituation(t).with(of(0, two), of(1, one, stored), of(2, one, stored)), true},
		"finally waits":                {newSituation(t).with(of(0, two), of(1, one, stored), of(2, ledger.Counts{Active: 1}, stored)), false},
		"finally has failed":           {newSituation(t).with(of(0, two), of(1, one, stored), of(2, ledger.Counts{Failed: 1}, stored)), false},
		"a job of the step has failed": {newSituation(t, always).with(of(0, two), of(1, ledger.Counts{Succeeded: 1, Failed: 1}, stored), of(2, one, stored)), false},
		"both jobs have succeeded":     {newSituation(t, always).with(of(0, two), of(1, two, stored), of(2, one, stored)), true},
		"htcd keeps no output":         {newSituation(t).with(of(0, two), of(1, one), of(2, one)), false},
		"some could not be fetched":    {newSituation(t).with(of(0, two), of(1, one, stored, func(d *DAG) { d.Job.Fetched = ledger.GivenUp }), of(2, one, stored)), false},
		"the ledger was lost":          {newSituation(t, func(w *v1alpha1.HTCWorkflow) { w.Status.Attempt = 1 }), false},
		"nothing has been sent":        {newSituation(t), false},
	} {
		require.Equal(t, c.want, c.s.hasResult(), name)
		c.s.Unfetched = true
		require.False(t, c.s.hasResult(), name)
	}

	s := newSituation(t).with(of(0, two), of(1, one, stored), of(2, one, stored))
	s.Workflow.Status = v1alpha1.HTCWorkflowStatus{Attempt: 1, ObservedGeneration: 1, Result: new("42")}
	require.Equal(t, "42", *s.keptResult())
	s.Workflow.Generation = 2
	require.Nil(t, s.keptResult(), "another file may be asked for")
}

func TestAWorkflowsStatusHasASentence(t *testing.T) {
	at := func(d *DAG) { d.Run.Cluster, d.Run.Schedd = 7, "a" }
	refused := DAG{Run: ledger.Run{State: ledger.Refused, Reason: "Refused", Message: "no such schedd"}}
	two, one := ledger.Counts{Succeeded: 2}, ledger.Counts{Succeeded: 1}
	failed := newSituation(t).with(of(0, two), of(1, ledger.Counts{Failed: 1}), of(2, one))
	failed.Failures = []ledger.Node{{
		Proc:     ledger.Proc{ExitCode: new(4), Message: "exit code 4"},
		Place:    ledger.Place{Step: 1, Sequence: ledger.AllSequences},
		StepName: "b",
	}}
	for name, c := range map[string]struct {
		s    Situation
		want string
		code *int32
	}{
		"nothing was sent":   {newSituation(t), "waiting to be submitted", nil},
		"nodes wait":         {newSituation(t).with(of(0, ledger.Counts{Active: 2, Idle: 2}, at)), "DAG 7.0 is at schedd a", nil},
		"one runs":           {newSituation(t).with(of(0, ledger.Counts{Active: 2, Idle: 1, Running: 1}, at)), "1 node is running", nil},
		"all have succeeded": {newSituation(t).with(of(0, two), of(1, one), of(2, one)), "4 nodes are done", new(int32(0))},
		"one has failed":     {failed, "3 of 4 nodes done, 1 failed; b/all: exit code 4", new(int32(4))},
		"it was refused":     {newSituation(t).with(refused), "no such schedd", nil},
		"the ledger was lost": {newSituation(t, func(w *v1alpha1.HTCWorkflow) {
			w.Finalizers = []string{v1alpha1.Finalizer}
			w.Status = v1alpha1.HTCWorkflowStatus{Attempt: 1, Phase: v1alpha1.PhaseSucceeded, Message: "before"}
		}), "before", nil},
	} {
		status := newStatus(c.s, lifecycle.View{})
		require.Equal(t, c.want, status.Message, name)
		require.Equal(t, c.code, status.ExitCode, name)
	}
}
