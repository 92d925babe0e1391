package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/sending"
)

// vanish removes workflows as a restore of etcd does while htcd is away.
func (w *world) vanish(names ...string) (gone []*v1alpha1.HTCWorkflow) {
	w.t.Helper()
	for _, name := range names {
		gone = append(gone, w.flow(name))
		require.NoError(w.t, w.store.Delete(w.flow(name)))
	}
	w.restart()
	w.settle()
	return gone
}

func TestAFewThatVanishTakeTheirJobsWithThem(t *testing.T) {
	w := newWorld(t)
	names := w.several(orphans.Few)
	require.Len(t, w.schedd.Jobs(), orphans.Few)
	w.vanish(names...)
	require.Empty(t, w.schedd.Jobs())
}

func TestManyThatVanishAreKeptUntilSomebodySaysSo(t *testing.T) {
	w := newWorld(t)
	names := w.several(orphans.Few + 1)
	gone := w.vanish(names...)
	w.restart()
	w.later(time.Hour)
	require.Len(t, w.schedd.Jobs(), len(names))

	// One that comes back is a workflow like any other.
	w.apply(gone[0])
	require.NoError(t, w.Crosscheck(t.Context()))
	reconcile := func(s orphans.Scope) int {
		found, err := w.ReconcileOrphans(t.Context(), s)
		require.NoError(t, err)
		w.settle()
		return len(found)
	}
	require.Equal(t, len(names)-1, reconcile(orphans.Scope{Remove: true, DryRun: true}))
	require.Len(t, w.schedd.Jobs(), len(names))

	// Nothing is sent under the name of a kept orphan, and a namesake can be deleted.
	again := newWorkflow(names[1])
	again.UID = "uid-again"
	w.apply(again)
	reason, _ := w.says(names[1], v1alpha1.ConditionSubmitted)
	require.Equal(t, sending.ReasonOrphansKept, reason)
	w.delete(names[1])
	require.Nil(t, w.flow(names[1]))

	require.Equal(t, 1, reconcile(orphans.Scope{Name: names[2], Remove: true}))
	require.Len(t, w.schedd.Jobs(), len(names)-1)
	require.Equal(t, len(names)-2, reconcile(orphans.Scope{Remove: true}))
	require.Len(t, w.schedd.Jobs(), 1)
	require.Zero(t, reconcile(orphans.Scope{}))
}
