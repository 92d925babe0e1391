package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestWhatIsGoneIsNotRemovedAgainWhileTheCacheShowsIt(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("one"))
	w.lags = true
	w.delete("one")
	w.later(time.Minute)
	removals := w.schedd.Calls(scheddtest.Remove)
	require.NotZero(t, removals)
	require.NotNil(t, w.flow("one"), "the cache still shows it")

	w.Changed.Add("default/one")
	w.later(time.Minute)
	require.Equal(t, removals, w.schedd.Calls(scheddtest.Remove))

	require.NoError(t, w.store.Delete(w.flow("one")))
	w.Changed.Add("default/one")
	w.settle()
	require.Zero(t, w.Memory.Len())
}

func TestTheOutputOfAWorkflowThatIsDeletedIsNotFetched(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Complete(1, 0, 0)
	require.NoError(t, w.Crosscheck(t.Context()))
	require.NoError(t, objects{w}.Delete(t.Context(), w.flow("flow")))
	key, _ := w.Changed.Get()
	w.SyncOne(t.Context(), key)
	w.Changed.Done(key)
	require.Zero(t, w.fetches.Len())
}
