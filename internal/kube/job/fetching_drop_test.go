package job

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestAnEarlierAttemptsOutputIsKeptUntilItIsReplaced(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.crosscheck()
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	job := w.job("one").DeepCopy()
	job.Spec.Script.Source, job.Generation = "exit 1\n", 2
	w.write(job)
	w.settle()
	require.EqualValues(t, 2, w.job("one").Status.Attempt)
	require.Contains(t, w.fetched("one"), "False NotEnded")
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	w.completed(2, 1)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.crosscheck()
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	w.schedd.Down(nil, scheddtest.Transfer)
	w.fetchAgain("one")
	require.Equal(t, "out of 2.0\n", w.kept("one", 2, 0, output.Stdout))
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
}

func TestDeletingAnHTCJobDropsItsOutput(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.apply(htcjob("other"))
	w.completed(1)
	w.completed(2)
	w.crosscheck()
	w.delete("one")
	require.Nil(t, w.job("one"))
	require.NoDirExists(t, filepath.Join(w.Output.Root, "default", "one"))
	require.Equal(t, "out of 2.0\n", w.kept("other", 1, 0, output.Stdout))
	left, err := os.ReadDir(filepath.Join(w.Output.Root, ".incoming"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// bringing is a schedd whose Transfer calls a function after everything has arrived.
type bringing struct {
	*scheddtest.Schedd
	brought func()
}

func (b bringing) Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error {
	err := b.Schedd.Transfer(ctx, id, procs, dir)
	b.brought()
	return err
}

// underWay starts a fetch that has received everything but stored nothing yet; goOn lets it finish.
func (w *world) underWay(name string) (goOn func()) {
	w.t.Helper()
	brought, keep, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.asks(bringing{w.schedd, func() { close(brought); <-keep }})
	w.fetcher.Retry("default/" + name)
	key, _ := w.fetcher.Queue.Get()
	go func() {
		defer close(over)
		w.fetcher.Fetch(w.t.Context(), key)
		w.fetcher.Queue.Done(key)
	}()
	<-brought
	w.asks(w.schedd)
	return func() { close(keep); <-over }
}

func TestAFetchThatIsUnderWayKeepsNothingOfADeletedHTCJob(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completedUnfetched(1)
	goOn := w.underWay("one")
	w.delete("one")
	require.Nil(t, w.job("one"))
	goOn()
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
}

func TestTheOutputOfAnObjectThatIsGoneMixesWithNobodys(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completedUnfetched(1)
	goOn := w.underWay("one")
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	left := filepath.Join(w.Output.Root, "default", "one", "1", "7")
	require.NoError(t, os.MkdirAll(left, 0o700))

	// Its finalizer is removed by hand, and another HTCJob takes its name, with a first attempt of its own.
	require.NoError(t, w.store.Delete(w.job("one")))
	w.apply(htcjob("one", func(job *v1alpha1.HTCJob) { job.UID = types.UID("uid-two") }))
	w.later(2 * recovery.AbsentTwice)
	require.NoDirExists(t, left)
	goOn()
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	w.schedd.Down(nil, scheddtest.Transfer)
	w.completed(2)
	w.crosscheck()
	require.Equal(t, "out of 2.0\n", w.kept("one", 1, 0, output.Stdout))
	w.later(time.Minute)
	require.Equal(
		t,
		"out of 2.0\n",
		w.kept("one", 1, 0, output.Stdout),
		"what is left of the older one goes without it",
	)
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
}
