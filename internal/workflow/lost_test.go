package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// wait lets a lost ledger be noticed, more than twice.
func (w *world) wait() {
	for range 4 {
		w.later(time.Minute)
	}
}

func TestADAGIsAdoptedWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	before := w.apply(newWorkflow("flow")).Status
	require.Equal(t, []string{"1.0"}, before.JobID)
	w.openLedger()
	w.wait()
	require.Equal(t, before.JobID, w.flow("flow").Status.JobID)
	require.Equal(t, before.Nodes, w.flow("flow").Status.Nodes)
	w.ends(1)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), "the next level follows")
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("flow").Status.JobID)

	// Of a later DAG it is not known which nodes it has.
	w.openLedger()
	w.wait()
	reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, reasonLedgerLost, reason)
	require.Contains(t, message, "apply it again")
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("flow").Status.JobID, "the status keeps what it knows")
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	w.delete("flow")
	w.wait()
	require.Nil(t, w.flow("flow"))
	require.Empty(t, w.schedd.Jobs())
}

func TestADAGOfAnEarlierSpecIsNotAdopted(t *testing.T) {
	w := newWorld(t)
	changed := w.apply(newWorkflow("flow")).DeepCopy()
	changed.Spec.Sequences.Count = new(int32(3))
	require.NoError(t, w.store.Update(changed))
	w.openLedger()
	w.wait()
	reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, reasonLedgerLost, reason)
	require.Contains(t, message, "DAG 1.0, of an earlier spec")
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestWhatHasEndedStaysSoWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.ends(1)
	before := w.flow("flow").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, before.Phase)
	w.openLedger()
	w.wait()
	require.Equal(t, before, w.flow("flow").Status)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

	again := w.flow("flow").DeepCopy()
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"}
	require.NoError(t, w.store.Update(again))
	w.wait()
	reason, _ := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, reasonLedgerLost, reason)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}
