package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// withFinally has a step that runs at the end in any case.
func withFinally(flow *v1alpha1.HTCWorkflow) *v1alpha1.HTCWorkflow {
	last := flow.Spec.Steps[0].StepWork
	last.Name = "clean"
	flow.Spec.Finally = &last
	return flow
}

func TestFinallyRunsAfterALevelThatIsRefused(t *testing.T) {
	w := newWorld(t)
	flow := withFinally(newWorkflow("one"))
	flow.Spec.Steps[1].Job.HTCOpts = "no_such_command = 1"
	w.apply(flow)
	w.ends(1)
	w.later(time.Minute)
	status := w.flow("one").Status
	require.Equal(t, []string{"1.0", "2.0"}, status.JobID)
	require.False(t, status.Phase.Terminal())
	require.Equal(t, int32(1), status.Attempt)

	w.restart()
	w.later(time.Minute)
	w.ends(2)
	status = w.flow("one").Status
	require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
	require.Equal(t, "Refused", status.Reason)
	require.Equal(t, int32(1), status.Attempt)
	require.Equal(t, v1alpha1.NodeCounts{Total: 4, Done: 3, Futile: 1}, status.Nodes)
	_, message := w.says("one", v1alpha1.ConditionFailed)
	require.Contains(t, message, "no_such_command")
	w.later(time.Hour)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestFinallyRunsAfterALevelWhoseInputsWillNeverCome(t *testing.T) {
	w := newWorld(t)
	flow := withFinally(newWorkflow("one"))
	flow.Spec.Steps[1].Job.Inputs = []v1alpha1.Input{
		{Name: "x", JobRef: &v1alpha1.JobRef{Name: "producer", Path: "x.txt"}},
	}
	w.Options.Jobs = producer{}
	w.restart()
	w.apply(flow)
	w.ends(1)
	status := w.flow("one").Status
	require.Equal(t, []string{"1.0", "2.0"}, status.JobID)
	w.ends(2)
	status = w.flow("one").Status
	require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
	require.Equal(t, lifecycle.ReasonInputFailed, status.Reason)
}

// producer is an HTCJob whose output was not kept.
type producer struct{}

func (producer) HTCJob(namespace, name string) *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "producer", Generation: 1},
	}
	job.Spec.Script = v1alpha1.Script{Program: v1alpha1.Program{Image: "centos"}}
	job.Spec.Outputs = []v1alpha1.Output{{Path: "y.txt"}}
	job.Status = v1alpha1.HTCJobStatus{
		Phase:              v1alpha1.PhaseSucceeded,
		Attempt:            1,
		ObservedGeneration: 1,
		SpecHash:           job.SpecHash(),
		Succeeded:          1,
		ClusterID:          7,
	}
	return job
}

func (producer) FailedProcs(context.Context, string, int) (map[int]bool, error) { return nil, nil }

func TestARefusedFinallyIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	flow := withFinally(oneStep("one"))
	flow.Spec.Finally.Job.HTCOpts = "no_such_command = 1"
	w.apply(flow)
	w.ends(1)
	w.later(time.Hour)
	status := w.flow("one").Status
	require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
	require.Equal(t, "Refused", status.Reason)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestNothingFollowsAWorkflowOfWhichNothingWasSent(t *testing.T) {
	w := newWorld(t)
	flow := withFinally(newWorkflow("one"))
	flow.Spec.Steps[0].Job.HTCOpts = "no_such_command = 1"
	w.apply(flow)
	w.later(time.Hour)
	require.Equal(t, v1alpha1.PhaseFailed, w.flow("one").Status.Phase)
	require.Zero(t, w.schedd.Calls(scheddtest.Submit))
}

func TestFinallyIsToldHowTheOthersEnded(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("flow")
	flow.Spec.Sequences, flow.Spec.Steps = nil, flow.Spec.Steps[:1]
	flow.Spec.Finally = &v1alpha1.StepWork{Name: "report", Job: flow.Spec.Steps[0].Job}
	w.apply(flow)
	w.ends(1)
	s, err := w.gather(t.Context(), w.flow("flow"))
	require.NoError(t, err)
	require.True(t, s.inFinally())
	told, err := w.ended(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "HTC_OUTCOME=Succeeded\nHTC_FAILED_COUNT=0\nHTC_FAILED=\n", told)
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		n, err := tx.Node("uid-flow", 1, 0)
		require.NoError(t, err)
		n.Status, n.ExitCode = ledger.StatusFailed, new(int)
		*n.ExitCode = 9
		return tx.UpdateNode(n)
	}))
	s, err = w.gather(t.Context(), w.flow("flow"))
	require.NoError(t, err)
	told, err = w.ended(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "HTC_OUTCOME=Failed\nHTC_FAILED_COUNT=1\nHTC_FAILED=a/job_0\n", told)

	require.False(t, s.DAGs[0].Aborted)
	flow = w.flow("flow").DeepCopy()
	flow.Spec.Steps[0].AbortExitCodes, flow.Spec.Steps[0].AbortReturn = []int32{9}, new(int32(0))
	s, err = w.gather(t.Context(), flow)
	require.NoError(t, err)
	require.True(t, s.DAGs[0].Aborted)
	require.Zero(t, *s.returns())
}
