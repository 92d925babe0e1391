package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestAWorkflowIsRefusedAtOnceWhereNoMachineTakesJobsOfSeveralNodes(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("one")
	flow.Spec.Steps[1].Job.Nodes = new(int32(2))
	w.schedd.Fail(scheddtest.TakesNodes, scheddtest.Fault{Err: condor.Refusal("no machine takes them")})
	w.apply(flow)
	status := w.flow("one").Status
	require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
	require.Equal(t, "Refused", status.Reason)
	require.Empty(t, status.JobID)
	_, message := w.says("one", v1alpha1.ConditionFailed)
	require.Equal(t, "no machine takes them", message)
}
