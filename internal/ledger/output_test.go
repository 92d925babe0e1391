package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputIsCounted(t *testing.T) {
	l, _ := openTemp(t)
	run, older := testRun("u1"), testRun("u2")
	run.OutputDir = "/data/out/physics/one/1"
	const completed, removed = 4, 3
	mustWrite(t, l, func(tx *Tx) error {
		for _, r := range []Run{run, older} {
			require.NoError(t, tx.InsertRun(r))
			require.NoError(t, tx.InsertProcs(r, 6))
		}
		runs, err := tx.UnfetchedRuns()
		require.NoError(t, err)
		require.Empty(t, runs)
		for i, p := range []Proc{
			{Status: StatusSucceeded, JobStatus: completed}, {Status: StatusFailed, JobStatus: completed, Fetched: IsFetched, Stderr: "no such file"},
			{Status: StatusFailed, JobStatus: completed, Fetched: GivenUp}, {Status: StatusFailed, JobStatus: removed},
			{Status: StatusOpen},
			{Status: StatusFailed, JobStatus: completed, Fetched: Incomplete, Stderr: "(it lacks a)"},
		} {
			for _, r := range []Run{run, older} {
				p.UID, p.Attempt, p.Proc = r.UID, r.Attempt, i
				require.NoError(t, tx.UpdateProc(p))
			}
		}
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		counts, err := tx.Output(run.UID, run.Attempt)
		require.NoError(t, err)
		require.Equal(
			t,
			OutputCounts{Completed: 4, Waiting: 1, GivenUp: 1, Incomplete: 1, Stderr: "(it lacks a)"},
			counts,
		)
		counts, err = tx.Output("u3", 1)
		require.ErrorIs(t, err, ErrNotFound)
		require.Zero(t, counts)
		waiting, err := tx.Procs(run.UID, run.Attempt, ProcFilter{Unfetched: true})
		require.NoError(t, err)
		require.Len(t, waiting, 1)
		require.Zero(t, waiting[0].Proc)
		runs, err := tx.UnfetchedRuns()
		require.NoError(t, err)
		require.Len(t, runs, 1, "what an older htcd sent has no place for its output")
		require.Equal(t, run.UID, runs[0].UID)
		return nil
	})
}
