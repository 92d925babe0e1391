package daemon

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestALeaderThatIsNotSureOfItsLeaseChangesAndRecordsNothing(t *testing.T) {
	book, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "htcjobs.db"))
	require.NoError(t, err)
	pool := scheddtest.New()
	sure := error(nil)
	fence := newFence(func() error { return sure })
	fencedPool, fencedBook := fencedSchedd{pool, fence}, fencedLedger{book, fence}
	write := func() (ran bool, err error) {
		err = fencedBook.Write(t.Context(), func(*ledger.Tx) error { ran = true; return nil })
		return ran, err
	}

	ran, err := write()
	require.NoError(t, err)
	require.True(t, ran)
	change := map[string]func() error{
		scheddtest.Submit: func() error {
			_, err := fencedPool.Submit(t.Context(), schedd.Identity{}, t.TempDir())
			return err
		},
		scheddtest.Remove: func() error {
			return scheddtest.Err(
				fencedPool.Change(t.Context(), schedd.Identity{}, schedd.Remove{Where: "ClusterId =?= 1"}),
			)
		},
		scheddtest.Transfer: func() error {
			return fencedPool.Transfer(t.Context(), schedd.Identity{}, schedd.Procs{}, t.TempDir())
		},
		scheddtest.Release: func() error {
			_, err := fencedPool.Change(t.Context(), schedd.Identity{}, schedd.Release{Procs: schedd.Procs{}})
			return err
		},
	}
	for name, do := range change {
		_ = do()
		require.Equal(t, 1, pool.Calls(name), name)
	}
	select {
	case <-fence.lost:
		require.Fail(t, "nobody was turned back")
	default:
	}

	sure = errUnsure
	ran, err = write()
	require.ErrorIs(t, err, errUnsure)
	require.False(t, ran)
	for name, do := range change {
		require.ErrorIs(t, do(), errUnsure)
		require.Equal(t, 1, pool.Calls(name), name)
	}
	<-fence.lost
	require.NoError(t, book.Close())
}
