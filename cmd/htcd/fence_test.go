package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestALeaderThatIsNotSureOfItsLeaseSendsAndRecordsNothing(t *testing.T) {
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
	_, _ = fencedPool.Submit(t.Context(), schedd.Identity{}, t.TempDir())
	require.Equal(t, 1, pool.Calls(scheddtest.Submit))
	select {
	case <-fence.lost:
		require.Fail(t, "nobody was turned back")
	default:
	}

	sure = errUnsure
	ran, err = write()
	require.ErrorIs(t, err, errUnsure)
	require.False(t, ran)
	_, err = fencedPool.Submit(t.Context(), schedd.Identity{}, t.TempDir())
	require.ErrorIs(t, err, errUnsure)
	require.Equal(t, 1, pool.Calls(scheddtest.Submit))
	<-fence.lost
	require.NoError(t, book.Close())
}
