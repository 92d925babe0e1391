package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

func TestADAGThatWasCalledLostIsTakenBackWhenItIsThereAgain(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("flow")
	flow.Spec.Steps[1].Pairing = v1alpha1.PairByIndex
	w.apply(flow)
	dagman := w.schedd.Jobs()
	tag := dagman[0].Tag
	node := condor.Job{
		Cluster:      5,
		Owner:        dagman[0].Owner,
		Status:       condor.Running,
		JobStartDate: w.clock.Unix(),
		Node:         condor.NodeTag{UID: tag.UID, DAG: tag.Attempt, Number: 0},
	}
	w.schedd.Put(node)
	passes := func(n int) {
		for range n {
			require.NoError(t, w.Crosscheck(t.Context()))
			w.later(time.Minute)
		}
	}
	passes(1)
	require.Equal(t, v1alpha1.NodeCounts{Total: 4, Running: 1}, w.flow("flow").Status.Nodes)
	w.schedd.Lose(1, 0)
	w.schedd.Lose(5, 0)
	passes(4)
	require.Equal(t, v1alpha1.PhaseFailed, w.flow("flow").Status.Phase)

	w.schedd.Put(dagman[0], node)
	passes(2)
	status := w.flow("flow").Status
	require.Equal(t, v1alpha1.PhaseRunning, status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 4, Running: 1}, status.Nodes)
	w.schedd.Complete(5, 0, 0)
	w.schedd.Leave(5, 0)
	w.ends(1)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("flow").Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 4, Done: 4}, w.flow("flow").Status.Nodes)
}

func TestADAGIsNotCalledLostSoonAfterItsScheddWasStarted(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("flow"))
	passes := func(n int) {
		for range n {
			require.NoError(t, w.Crosscheck(t.Context()))
			w.later(time.Minute)
		}
	}
	passes(1)
	w.schedd.Lose(1, 0)
	w.clock = w.clock.Add(time.Minute)
	w.schedd.Restart()
	passes(30)
	require.False(t, w.flow("flow").Status.Phase.Terminal())
	reason, message := w.says("flow", v1alpha1.ConditionBackendReachable)
	require.Equal(t, backend.ReasonJobsMissing, reason)
	require.Contains(t, message, "started less than an hour ago")
	passes(40)
	require.Equal(t, v1alpha1.PhaseFailed, w.flow("flow").Status.Phase)
}
