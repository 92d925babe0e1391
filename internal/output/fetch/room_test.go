package fetch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// leave lets fetches use this many MiB of the volume.
func (w *world) leave(mebibytes int64) {
	size := output.Room{Bytes: 1 << 30, Files: 1 << 20}
	w.Shares.Volume = func() (free, all output.Room, err error) { return size, size, nil }
	w.Shares.Reserve = func(size output.Room) output.Room { return output.Room{Bytes: size.Bytes - mebibytes<<20} }
}

// noSpace returns the error for lack of space.
func (w *world) noSpace() string {
	w.t.Helper()
	var e *output.NoSpaceError
	require.ErrorAs(w.t, w.inTheWay, &e)
	return e.Message
}

func TestAFetchIsForWhatFits(t *testing.T) {
	w := newWorld(t)
	w.leave(134)
	run := w.completed("one", 3)
	for proc, size := range []int64{60 << 20, 200 << 20, 20 << 20} {
		w.schedd.Edit(1, proc, func(j *condor.Job) { j.BytesSent = size })
	}
	w.fetch("one")
	require.Equal(t, "out of 1.0\n", w.kept(run, 0))
	require.Equal(t, "absent", w.kept(run, 1))
	require.Equal(t, "out of 1.2\n", w.kept(run, 2))
	require.Contains(t, w.noSpace(), "job 1.1 left 201 MiB, for which the volume has no room beside the ")
	require.Len(t, w.schedd.Jobs(), 1)

	w.leave(1 << 10)
	w.fetch("one")
	require.NoError(t, w.inTheWay)
	require.Equal(t, ledger.OutputCounts{Completed: 3}, w.counts(run))
}

func TestFetchesUnderWayShareWhatIsFree(t *testing.T) {
	w := newWorld(t)
	w.leave(100)
	other, err := w.Shares.Book(
		"other",
		func(output.Left) (output.Room, bool) { return output.Room{Bytes: 90 << 20}, false },
	)
	require.NoError(t, err)
	run := w.completed("one", 1)
	w.schedd.Edit(1, 0, func(j *condor.Job) { j.BytesSent = 20 << 20 })
	w.fetch("one")
	require.Contains(
		t,
		w.noSpace(),
		"job 1.0 left 21 MiB, for which the volume has no room until other fetches are over",
	)
	other.Leave()
	w.fetch("one")
	require.NoError(t, w.inTheWay)
	require.Equal(t, ledger.OutputCounts{Completed: 1}, w.counts(run))
}

func TestAFetchThatBringsMoreThanWasReportedIsBrokenOff(t *testing.T) {
	w := newWorld(t)
	block := make(chan struct{})
	defer close(block)
	w.completed("one", 1)
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{Block: block})
	// as if it had filled the volume
	w.Shares.Reserve = func(output.Room) output.Room { return output.Room{Bytes: 1 << 60} }
	b, err := w.Shares.Book("default", func(output.Left) (output.Room, bool) { return leastOutput, false })
	require.NoError(t, err)
	w.inTheWay = guarded(t.Context(), b, func(ctx context.Context) error {
		return w.Schedd.Transfer(ctx, schedd.Identity{}, schedd.Procs{}, t.TempDir())
	})
	require.Contains(t, w.noSpace(), "a fetch was broken off")
}

func TestANamespaceThatHasItsShareOfTheVolumeLeavesTheRestToOthers(t *testing.T) {
	w := newWorld(t)
	size := output.Room{Bytes: 100 << 20, Files: 1 << 20}
	free := size
	w.Shares.Volume = func() (free_, all output.Room, err error) { return free, size, nil }
	w.Shares.Reserve = func(output.Room) output.Room { return output.Room{} }
	keep := func(namespace string, mebibytes int64) {
		dir := filepath.Join(w.Store.Root, namespace, "kept")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		require.NoError(t, os.Truncate(filepath.Join(dir, "file"), mebibytes<<20))
		free.Bytes -= mebibytes << 20
	}
	keep("greedy", 70)
	leaves := func(namespace, name string, mebibytes int64) ledger.Run {
		run := w.completedIn(namespace, name, 1)
		w.schedd.Edit(run.Cluster, 0, func(j *condor.Job) { j.BytesSent = mebibytes << 20 })
		return run
	}
	leaves("greedy", "more", 8)
	w.fetchIn("greedy", "more")
	require.Equal(
		t,
		"job 1.0 left 9 MiB, with which namespace greedy would have more than three quarters of what the others leave of the volume: "+output.MoreRoom,
		w.noSpace(),
	)
	victim := leaves("victim", "some", 8)
	w.fetchIn("victim", "some")
	require.NoError(t, w.inTheWay)
	require.Equal(t, ledger.OutputCounts{Completed: 1}, w.counts(victim))

	require.NoError(t, os.RemoveAll(filepath.Join(w.Store.Root, "greedy")))
	free = size
	w.clock = w.clock.Add(time.Hour)
	w.fetchIn("greedy", "more")
	require.NoError(t, w.inTheWay, "it goes on by itself when the namespace has deleted something")
}
