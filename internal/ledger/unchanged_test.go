package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnchangedAndChangedProcsTogetherAreTheUnconfirmedOnes(t *testing.T) {
	l, _ := openTemp(t)
	r := testRun("u1")
	r.Procs = 8
	insert(t, l, r)
	code := 0
	setProcs(t, l, map[int]func(*Proc){ // 0 stays as submitted: nothing is known about it
		1: func(p *Proc) { p.JobStatus, p.Source = 1, "crosscheck" },
		2: func(p *Proc) { p.JobStatus, p.Source = 2, "crosscheck" },
		3: func(p *Proc) { p.JobStatus, p.Source, p.Reason, p.Message = 5, "crosscheck", "Held", "why" },
		4: func(p *Proc) { p.JobStatus, p.Source, p.Absent = 1, "crosscheck", 1 },
		5: func(p *Proc) { p.Status, p.Source, p.ExitCode = StatusSucceeded, "callback", &code },
		6: func(p *Proc) { p.Status, p.Source, p.ExitCode = StatusSucceeded, "crosscheck", &code },
		7: func(p *Proc) { p.JobStatus, p.Source = 1, "crosscheck" },
	})
	require.NoError(t, l.Read(t.Context(), func(tx *Tx) error {
		unchanged := map[int]int{}
		require.NoError(t, tx.Unchanged("u1", 1, 0, 2, func(proc, jobStatus int) { unchanged[proc] = jobStatus }))
		require.Equal(t, map[int]int{1: 1, 2: 2}, unchanged)
		require.NoError(t, tx.Unchanged("u1", 1, 3, 2, func(proc, jobStatus int) { unchanged[proc] = jobStatus }))
		require.Equal(t, map[int]int{1: 1, 2: 2, 7: 1}, unchanged)

		others, err := tx.Procs("u1", 1, ProcFilter{Unconfirmed: true, Changed: true})
		var numbers []int
		for _, p := range others {
			numbers = append(numbers, p.Proc)
		}
		require.Equal(t, []int{0, 3, 4, 5}, numbers)
		return err
	}))
}

func TestSetCheckedWritesNothingElseOfARun(t *testing.T) {
	l, _ := openTemp(t)
	r := testRun("u1")
	insert(t, l, r)
	before, after := r, r
	after.Checked, after.Reason = noon.Add(1e9), "not written"
	require.NoError(t, l.Write(t.Context(), func(tx *Tx) error { return tx.SetChecked(after) }))
	require.NoError(t, l.Read(t.Context(), func(tx *Tx) error {
		now, err := tx.Run("u1", 1)
		require.True(t, after.Checked.Equal(now.Checked))
		now.Checked = before.Checked
		require.Equal(t, before.Reason, now.Reason)
		return err
	}))
}

// setProcs changes procs of the run u1.
func setProcs(tb testing.TB, l *Ledger, changes map[int]func(*Proc)) {
	tb.Helper()
	mustWrite(tb, l, func(tx *Tx) error {
		for number, change := range changes {
			p, err := tx.Proc("u1", 1, number)
			if err != nil {
				return err
			}
			change(&p)
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		return nil
	})
}
