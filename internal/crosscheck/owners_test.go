package crosscheck

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

func TestARunThatCannotBeWrittenKeepsNoOtherFromBeingChecked(t *testing.T) {
	w := newPair(t, 1)
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	book, err := ledger.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	w.ours.book, w.ours.Ledger = book, book
	for range 3 {
		w.submit()
	}
	eachProc := func(do func(cluster, proc int)) {
		for i, n := range w.procs {
			for proc := range n {
				do(i+1, proc)
			}
		}
	}
	states := func(uid string) (all []condor.JobStatus) {
		require.NoError(t, book.Read(t.Context(), func(tx *ledger.Tx) error {
			procs, err := tx.Procs(uid, 1, ledger.ProcFilter{})
			for _, p := range procs {
				all = append(all, condor.JobStatus(p.JobStatus))
			}
			return err
		}))
		return all
	}
	check := func(one func() error, fails bool) {
		t.Helper()
		w.clock = w.clock.Add(2 * time.Minute)
		if err := one(); fails {
			require.ErrorContains(t, err, "the rows of u1 are faulty")
		} else {
			require.NoError(t, err)
		}
	}
	crosscheck := func() error { return w.ours.Crosscheck(t.Context()) }
	refresh := func() error { return w.ours.Refresh(t.Context()) }
	unread := func(is bool) {
		w.schedd.Quietly(3, 0, func(j *condor.Job) { j.Unread = is })
	}
	unread(true)
	check(crosscheck, false)

	mend := ledgertest.Refuse(t, path, "htcjobs", "u1")
	unread(false)
	eachProc(w.start)
	check(refresh, true)
	require.Equal(t, condor.Idle, states("u1")[0])
	require.Equal(t, condor.Running, states("u2")[0])
	require.Equal(t, condor.Running, states("u3")[0], "of which everything is asked")
	asked := w.schedd.Calls(scheddtest.Changed)
	check(refresh, true)
	check(crosscheck, true)
	require.Greater(t, w.schedd.Calls(scheddtest.Changed), asked, "of the others only what has changed")
	mend()
	check(refresh, false)
	require.Equal(t, condor.Running, states("u1")[0], "though nothing has changed since")

	mend = ledgertest.Refuse(t, path, "htcjobs", "u1")
	eachProc(func(cluster, proc int) {
		if cluster == 3 {
			w.schedd.Hold(cluster, proc, 1, "by hand")
			return
		}
		w.schedd.Complete(cluster, proc, 0)
		w.schedd.Leave(cluster, proc)
	})
	check(func() error {
		var runs []ledger.Run
		require.NoError(t, book.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			runs, err = tx.Runs(ledger.RunFilter{})
			return err
		}))
		return w.ours.Check(t.Context(), backend.Group{Runs: runs})
	}, true)
	require.Equal(t, condor.Held, states("u3")[0], "which is not in the history")
	check(crosscheck, true)
	check(crosscheck, true)
	require.Equal(t, condor.Completed, states("u2")[0])
	require.Equal(t, condor.Running, states("u1")[0])
	mend()
	check(crosscheck, false)
	require.Equal(t, condor.Completed, states("u1")[0], "the history is read from before")
}
