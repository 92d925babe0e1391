package outputfetch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// leave lets fetches use this many MiB of the volume.
func (w *world) leave(mebibytes int64) {
	size := output.Room{Bytes: 1 << 30, Files: 1 << 20}
	w.volume = func() (free, all output.Room, err error) { return size, size, nil }
	w.KeepFree = size.Bytes - mebibytes<<20
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
	w.leave(100)
	run := w.completed("one", 3)
	for proc, size := range []int64{60 << 20, 200 << 20, 20 << 20} {
		w.schedd.Edit(1, proc, func(j *schedd.Job) { j.BytesSent = size })
	}
	w.fetch("one")
	require.Equal(t, "out of 1.0\n", w.kept(run, 0))
	require.Equal(t, "absent", w.kept(run, 1))
	require.Equal(t, "out of 1.2\n", w.kept(run, 2))
	require.Contains(t, w.noSpace(), "job 1.1 left 201 MiB, for which the volume has no room beside the ")
	require.Len(t, w.schedd.Jobs(), 1)
	require.Zero(t, w.bookings.now(), "nothing stays booked")

	w.KeepFree = 1
	w.fetch("one")
	require.NoError(t, w.inTheWay)
	require.Equal(t, ledger.OutputCounts{Completed: 3}, w.counts(run))
}

func TestFetchesUnderWayShareWhatIsFree(t *testing.T) {
	w := newWorld(t)
	w.leave(100)
	w.bookings.sum = output.Room{Bytes: 90 << 20}
	run := w.completed("one", 1)
	w.schedd.Edit(1, 0, func(j *schedd.Job) { j.BytesSent = 20 << 20 })
	w.fetch("one")
	require.Contains(t, w.noSpace(), "job 1.0 left 21 MiB, for which the volume has no room until other fetches are over")
	w.bookings.sum = output.Room{}
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
	w.KeepFree = 1 << 60 // as if it had filled the volume
	w.inTheWay = w.guarded(t.Context(), func(ctx context.Context) error {
		return w.Schedd.Transfer(ctx, schedd.Identity{}, schedd.Procs{}, t.TempDir())
	})
	require.Contains(t, w.noSpace(), "a fetch was broken off")
}
