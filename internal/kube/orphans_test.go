package kube

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// vanish is what a restored etcd does to HTCJobs while htcd is away.
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
	w := newWorld(t)
	w.vanish(w.several(fewOrphans)...)
	require.Empty(t, w.schedd.Jobs())
}

func TestManyThatVanishAreKeptUntilSomebodySaysSo(t *testing.T) {
	w := newWorld(t)
	names := w.several(fewOrphans + 1)
	objects := w.vanish(names...)
	require.Len(t, w.schedd.Jobs(), len(names))

	// What comes later changes nothing, nor does a restart.
	w.apply(htcjob("later"))
	w.restart()
	w.later(time.Hour)
	require.Len(t, w.schedd.Jobs(), len(names)+1)

	// One that comes back is an HTCJob like others.
	w.apply(objects[0])
	w.crosscheck()
	report := w.reconcile(ReconcileOptions{RemoveOrphans: true, DryRun: true})
	require.Len(t, report.Differences, len(names)-1)
	for i, d := range report.Differences {
		require.Equal(t, []any{names[i+1], "Submitted", "Orphan", false}, []any{d.Name, d.Was, d.Is, d.Repaired})
	}
	w.settle()
	require.Len(t, w.schedd.Jobs(), len(names)+1)

	// Nothing is sent under the name of one that is kept.
	again := htcjob(names[1])
	again.UID = "uid-again"
	condition := w.apply(again).Status.Conditions
	require.Equal(t, reasonOrphansKept, condition[0].Reason)
	w.delete(names[1])
	require.Nil(t, w.job(names[1]))

	w.reconcile(ReconcileOptions{Name: names[2], RemoveOrphans: true})
	w.settle()
	require.Len(t, w.schedd.Jobs(), len(names))
	require.Len(t, w.reconcile(ReconcileOptions{RemoveOrphans: true}).Differences, len(names)-2)
	w.settle()
	require.Len(t, w.schedd.Jobs(), 2)
	require.Empty(t, w.reconcile(ReconcileOptions{}).Differences)
}

func TestManyIsAShare(t *testing.T) {
	runs := func(n int) (runs []ledger.Run) {
		for i := range n {
			runs = append(runs, ledger.Run{UID: fmt.Sprint(i), Attempt: 1, State: ledger.Submitted}, ledger.Run{UID: fmt.Sprint(i), Attempt: 2, State: ledger.Submitted})
		}
		return runs
	}
	there := func(n, total int) map[string]bool {
		there := map[string]bool{}
		for i := n; i < total; i++ {
			there[fmt.Sprint(i)] = true
		}
		return there
	}
	never := func(_, _ string) bool { return false }
	for _, c := range []struct{ gone, total, kept int }{{5, 5, 0}, {6, 6, 6}, {6, 599, 6}, {6, 600, 0}, {7, 600, 7}} {
		kept, few := sortOrphans(runs(c.total), there(c.gone, c.total), nil, never)
		require.Len(t, kept, c.kept, "%+v", c)
		require.Len(t, few, c.gone-c.kept, "%+v", c)
	}
	// Those that were kept stay so beside any number of others.
	kept, few := sortOrphans(runs(1000), there(8, 1000), map[string]bool{"0": false, "1": true}, never)
	require.Len(t, kept, 1)
	require.Len(t, few, 6)
	require.Equal(t, 2, kept[0].Attempt)
}

func TestADeletionThatWasSeen(t *testing.T) {
	with := htcjob("one", func(job *v1alpha1.HTCJob) { job.Finalizers = []string{v1alpha1.Finalizer} })
	deleted := with.DeepCopy()
	deleted.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		object any
		want   bool
	}{
		"its finalizer was taken away by hand":     {deleted, true},
		"the same, and the watch was broken off":   {cache.DeletedFinalStateUnknown{Obj: deleted}, true},
		"it never had a finalizer":                 {htcjob("one"), true},
		"when it was last seen it had none":        {cache.DeletedFinalStateUnknown{Obj: htcjob("one")}, false},
		"it vanished from etcd":                    {with, false},
		"it is missing when the watch begins anew": {cache.DeletedFinalStateUnknown{Obj: with}, false},
	} {
		var d deletions
		d.note(c.object)
		require.Equal(t, c.want, d.seen("default/one", "uid-one"), name)
	}
}
