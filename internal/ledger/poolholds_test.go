package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatPoolsHoldIsFound(t *testing.T) {
	l, _ := openTemp(t)
	grid, other, ended := testRun("grid"), testRun("other"), testRun("ended")
	grid.Pool, other.Pool, ended.Pool, ended.Ended = "grid", "other", "grid", noon
	grid.Procs, other.Procs, ended.Procs = 2, 1, 1
	mustWrite(t, l, func(tx *Tx) error {
		for _, r := range []Run{grid, other, ended} {
			r.State = Submitted
			require.NoError(t, tx.InsertRun(r))
			require.NoError(t, tx.InsertProcs(r, r.Procs))
		}
		return nil
	})
	uids := func(runs []Run, err error) (found []string) {
		require.NoError(t, err)
		for _, r := range runs {
			found = append(found, r.UID)
		}
		return found
	}
	set := func(proc int, status Status, jobStatus int, reason string) {
		mustWrite(t, l, func(tx *Tx) error {
			p, err := tx.Proc("grid", 1, proc)
			require.NoError(t, err)
			p.Status, p.JobStatus, p.Reason = status, jobStatus, reason
			return tx.UpdateProc(p)
		})
	}
	look := func(toHold, held []string, n int) {
		t.Helper()
		mustRead(t, l, func(tx *Tx) error {
			require.Equal(t, toHold, uids(tx.RunsToHold("grid")))
			require.Equal(t, held, uids(tx.RunsHeldByPools("htcd: HTCPool ")))
			got, err := tx.HeldByPools("grid")
			require.Equal(t, n, got["physics"])
			return err
		})
	}
	look([]string{"grid"}, nil, 0) // nobody has seen them yet
	set(0, StatusOpen, 2, "")
	set(1, StatusOpen, 5, "Held")
	look(nil, nil, 0)
	set(0, StatusOpen, 1, "")
	set(1, StatusOpen, 5, "PoolSuspended")
	look([]string{"grid"}, []string{"grid"}, 1)
	set(0, StatusOpen, 5, "PoolSuspended")
	look(nil, []string{"grid"}, 2)
	set(0, StatusFailed, 3, "Removed")
	set(1, StatusOpen, 1, "")
	look([]string{"grid"}, nil, 0)

	set(1, StatusOpen, 2, "")
	look(nil, nil, 0)
	pause := func(why string) {
		grid.Factory, grid.Procs, grid.State = 2, 3, Submitted
		grid = grid.PausedFor(why)
		mustWrite(t, l, func(tx *Tx) error { return tx.UpdateRun(grid) })
	}
	pause("")
	look([]string{"grid"}, nil, 0) // its factory may make another
	pause("somebody wants that")
	look(nil, nil, 0)
	pause("htcd: HTCPool grid is suspended (by user robot)")
	look(nil, []string{"grid"}, 0)
}
