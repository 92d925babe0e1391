package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestADeadlineAppliesWhileTheNextDAGCannotBeSent(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("flow")
	flow.Spec.ActiveDeadlineSeconds = new(int64(3600))
	w.apply(flow)
	w.schedd.Down(&condor.Error{Kind: condor.Unreachable, Command: "condor_submit"}, scheddtest.Submit)
	w.ends(1)
	require.False(t, w.flow("flow").Status.Phase.Terminal())
	for range 3 {
		w.later(time.Hour)
	}
	status := w.flow("flow").Status
	require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
	require.Equal(t, crosscheck.StopDeadline, status.Reason)
	require.Equal(t, []string{"1.0"}, status.JobID)
}

func TestTheOutputOfLevelsBeforeARefusedOneIsFetched(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("flow")
	flow.Spec.Steps[1].Job.HTCOpts = "no_such_command = 1"
	w.apply(flow)
	w.ends(1)
	w.later(time.Hour)
	require.Equal(t, v1alpha1.PhaseFailed, w.flow("flow").Status.Phase)
	reason, _ := w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Equal(t, "Fetched", reason)
}
