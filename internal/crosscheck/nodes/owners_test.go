package nodes

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// tolerant is a world in which passes may fail.
type tolerant struct{ *world }

func (tolerant) Passed(string, schedd.Endpoint, time.Duration, error) {}

func TestADAGThatCannotBeWrittenKeepsNoOtherFromBeingChecked(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	book, err := ledger.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	w.book, w.Ledger, w.Observer, w.Whole = book, book, tolerant{w}, time.Hour
	bad, good := w.send("bad", 1), w.send("good", 1)
	w.node("bad", 0, 100)
	w.node("good", 0, 200)
	w.crosscheck()
	fails := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "the rows of bad are faulty")
	}

	mend := ledgertest.Refuse(t, path, "nodes", "bad")
	w.schedd.Run(100, 0)
	w.schedd.Run(200, 0)
	w.send("new", 1)
	w.node("new", 0, 300)
	w.later(time.Minute)
	fails(w.Refresh(t.Context()))
	require.Equal(t, ledger.NodeIdle, w.states("bad")[0])
	require.Equal(t, ledger.NodeRunning, w.states("good")[0])
	require.Equal(t, ledger.NodeIdle, w.states("new")[0], "of which everything is asked")
	w.later(time.Hour / 4)
	fails(w.Refresh(t.Context()))
	mend()
	w.later(time.Hour / 4)
	require.NoError(t, w.Refresh(t.Context()))
	require.Equal(t, ledger.NodeRunning, w.states("bad")[0], "though nothing has changed since")

	mend = ledgertest.Refuse(t, path, "nodes", "bad")
	w.leaves(100, 0)
	w.leaves(200, 0)
	for range 2 {
		w.later(time.Minute)
		fails(w.Crosscheck(t.Context()))
	}
	require.Equal(t, ledger.NodeDone, w.states("good")[0])
	_, err = w.Reconcile(t.Context(), []ledger.Run{bad, good}, false, func(crosscheck.Difference) {})
	fails(err)
	mend()
	w.crosscheck()
	require.Equal(t, ledger.NodeDone, w.states("bad")[0], "the history is read from before")
}

func TestADAGThatWasDeletedKeepsNoOtherFromBeingChecked(t *testing.T) {
	w := newWorld(t)
	gone, good := w.send("gone", 1), w.send("good", 1)
	w.node("good", 0, 200)
	w.schedd.Run(200, 0)
	w.write(func(tx *ledger.Tx) error { return tx.DeleteRuns(gone.UID) })
	require.NoError(t, w.Check(t.Context(), backend.Group{Runs: []ledger.Run{gone, good}}))
	require.Equal(t, ledger.NodeRunning, w.states("good")[0])
	require.NoError(t, w.Check(t.Context(), backend.Group{Runs: []ledger.Run{gone}}))
}
