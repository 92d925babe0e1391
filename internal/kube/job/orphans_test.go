package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
)

// vanish removes HTCJobs as a restore of etcd does while htcd is away.
func (w *world) vanish(names ...string) (objects []*v1alpha1.HTCJob) {
	w.t.Helper()
	for _, name := range names {
		objects = append(objects, w.job(name))
		require.NoError(w.t, w.store.Delete(w.job(name)))
	}
	w.restart()
	w.settle()
	return objects
}

func (w *world) several(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("job-%d", i))
		w.apply(htcjob(names[i]))
	}
	return names
}

func TestAFewThatVanishTakeTheirJobsWithThem(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, func(o *Options) { o.Log = zerolog.New(&log) })
	const words = "has vanished without having been deleted"
	w.apply(htcjob("deleted"))
	w.delete("deleted")
	require.NotContains(t, log.String(), words)
	w.vanish(w.several(orphans.Few)...)
	require.Empty(t, w.schedd.Jobs())
	w.clock = w.clock.Add(2 * recovery.AbsentTwice)
	for i := range orphans.Few {
		w.ActOne(t.Context(), reconciler.Deleting, fmt.Sprintf("default/job-%d", i))
	}
	require.Equal(t, orphans.Few, strings.Count(log.String(), words))
}

func TestManyThatVanishAreKeptUntilSomebodySaysSo(t *testing.T) {
	w := newWorld(t)
	names := w.several(orphans.Few + 1)
	objects := w.vanish(names...)
	require.Len(t, w.schedd.Jobs(), len(names))

	// Neither new HTCJobs nor a restart change anything.
	w.apply(htcjob("later"))
	w.restart()
	w.later(time.Hour)
	require.Len(t, w.schedd.Jobs(), len(names)+1)

	// One that comes back is an HTCJob like any other.
	w.apply(objects[0])
	w.crosscheck()
	report := w.reconcile(ReconcileOptions{RemoveOrphans: true, DryRun: true})
	require.Len(t, report.Differences, len(names)-1)
	for i, d := range report.Differences {
		require.Equal(t, []any{names[i+1], "Submitted", "Orphan", false}, []any{d.Name, d.Was, d.Is, d.Repaired})
	}
	w.settle()
	require.Len(t, w.schedd.Jobs(), len(names)+1)

	// Nothing is sent under the name of a kept orphan.
	again := htcjob(names[1])
	again.UID = "uid-again"
	condition := w.apply(again).Status.Conditions
	require.Equal(t, sending.ReasonOrphansKept, condition[0].Reason)
	w.delete(names[1])
	require.Nil(t, w.job(names[1]))

	twice := func() { // the schedd is asked for the second time about those that are being removed
		w.settle()
		w.clock = w.clock.Add(time.Minute)
		for _, name := range names {
			w.Changed.Add("default/" + name)
		}
		w.settle()
	}
	w.reconcile(ReconcileOptions{Name: names[2], RemoveOrphans: true})
	twice()
	require.Len(t, w.schedd.Jobs(), len(names))
	require.Len(t, w.reconcile(ReconcileOptions{RemoveOrphans: true}).Differences, len(names)-2)
	twice()
	require.Len(t, w.schedd.Jobs(), 2)
	require.Empty(t, w.reconcile(ReconcileOptions{}).Differences)
}
