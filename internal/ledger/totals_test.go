package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTotalsAreTheSumOfAllRuns(t *testing.T) {
	l, _ := openTemp(t)
	sent := time.UnixMilli(1_000_000).UTC()
	run := func(uid, at string, cluster int) Run {
		return Run{
			UID:       uid,
			Attempt:   1,
			Namespace: "ns",
			Name:      uid,
			State:     Submitted,
			Schedd:    at,
			Cluster:   cluster,
			Procs:     3,
			Submitted: sent,
			OutputDir: "/out",
		}
	}
	a, b, c := run("a", "one", 1), run("b", "one", 2), run("c", "two", 1)
	b.Checked = sent.Add(time.Hour)
	c.Checked, c.Confirmed = sent, true
	require.NoError(t, l.Write(t.Context(), func(tx *Tx) error {
		for _, r := range []Run{a, b, c} {
			if err := tx.InsertRun(r); err != nil {
				return err
			}
			if err := tx.InsertProcs(r, 3); err != nil {
				return err
			}
		}
		for i, jobStatus := range []int{jobIdle, jobTransferring, jobHeld} {
			p, err := tx.Proc("a", 1, i)
			if err != nil {
				return err
			}
			p.JobStatus = jobStatus
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		for i, status := range []Status{StatusSucceeded, StatusFailed, StatusSucceeded} {
			p, err := tx.Proc("c", 1, i)
			if err != nil {
				return err
			}
			p.Status, p.JobStatus = status, 4
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, l.Read(t.Context(), func(tx *Tx) error {
		counts, err := tx.Totals()
		require.NoError(t, err)
		require.Equal(t, Counts{Active: 6, Succeeded: 2, Failed: 1, Idle: 1, Running: 1, Held: 1}, counts)
		open, err := tx.OpenRuns()
		require.NoError(t, err)
		require.Equal(
			t,
			[]OpenAt{{Schedd: "one", Runs: 2, Checked: sent}},
			open,
			"a run never asked about counts from its submission",
		)
		n, err := tx.UnfetchedProcs()
		require.NoError(t, err)
		require.Equal(t, 3, n)
		return nil
	}))
}

func TestAnEmptyLedgerSumsUpToNothing(t *testing.T) {
	l, _ := openTemp(t)
	require.NoError(t, l.Read(t.Context(), func(tx *Tx) error {
		counts, err := tx.Totals()
		require.NoError(t, err)
		require.Zero(t, counts)
		open, err := tx.OpenRuns()
		require.NoError(t, err)
		require.Empty(t, open)
		return nil
	}))
}
