package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// again applies another workflow of the same name: the informer hears of the deletion and of the new one at once.
func (w *world) again(flow *v1alpha1.HTCWorkflow) *v1alpha1.HTCWorkflow {
	w.t.Helper()
	w.lags = true
	w.delete(flow.Name)
	w.later(time.Minute)
	w.lags = false
	flow.ResourceVersion = "900"
	require.NoError(w.t, w.store.Update(flow))
	w.Changed.Add("default/" + flow.Name)
	w.later(time.Minute)
	return w.flow(flow.Name)
}

func TestARecreatedWorkflowHasNoResultsOfTheOneBefore(t *testing.T) {
	finishing := func(uid string) *v1alpha1.HTCWorkflow {
		flow := oneStep("one")
		flow.UID = types.UID(uid)
		flow.Spec.Sequences.Count = new(int32(10))
		flow.Spec.Rules = []v1alpha1.Rule{
			{Step: "a", Metric: "loss", Function: "mean", When: "value < 0.1", Action: v1alpha1.ActionFinish},
		}
		return flow
	}
	w := newWorld(t)
	w.apply(finishing("uid-first"))
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		n, err := tx.Node("uid-first", 1, 3)
		if err == nil {
			_, err = tx.SetResults(n, []ledger.Result{{Name: "loss", Value: 0.05}}, true)
		}
		return err
	}))
	w.noteResults("default/one", true, "")
	require.NoError(t, w.measure(t.Context(), "default/one"))
	w.later(time.Minute)
	require.Len(t, w.flow("one").Status.Metrics, 1)
	late := w.Memory.Of("default/one").Kind.measured

	second := w.again(finishing("uid-second"))
	require.Empty(t, second.Status.Metrics)
	w.Memory.Change(
		"default/one",
		func(r *record) { r.Kind.measured = late },
	) // they were being summed up when it was deleted
	w.later(time.Minute)
	require.NoError(t, w.measure(t.Context(), "default/one"))
	w.passes(3)
	status := w.flow("one").Status
	require.Empty(t, status.Metrics)
	require.False(t, status.Phase.Terminal(), "no rule has finished it: %s %s", status.Phase, status.Reason)
	require.Equal(t, int32(10), status.Nodes.Total)
	require.Len(t, w.schedd.Jobs(), 1)
}

func TestARecreatedWorkflowIsToldWhatIsWrongWithItsResults(t *testing.T) {
	const wrong = "line 1: expected NAME=value"
	w := newWorld(t)
	w.apply(oneStep("one"))
	for range 2 {
		w.noteResults("default/one", false, wrong)
	}
	require.Equal(t, []string{"ResultsIgnored: " + wrong}, w.warned)
	another := oneStep("one")
	another.UID = "uid-another"
	w.again(another)
	w.noteResults("default/one", false, wrong)
	require.Equal(t, []string{"ResultsIgnored: " + wrong, "ResultsIgnored: " + wrong}, w.warned)
}
