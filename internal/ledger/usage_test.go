package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsageIsThatOfTheProcsThatARunHasSent(t *testing.T) {
	l, _ := openTemp(t)
	run := testRun("u")
	run.Procs = 4
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.InsertRun(run))
		require.NoError(t, tx.InsertProcs(run, 4))
		for _, proc := range []int{1, 2, 3} {
			p, err := tx.Proc("u", run.Attempt, proc)
			require.NoError(t, err)
			p.Usage, p.Source = "1 2", "crosscheck"
			if proc == 2 {
				p.Source = SourceCarried
			}
			require.NoError(t, tx.UpdateProc(p))
			got, err := tx.Proc("u", run.Attempt, proc)
			require.NoError(t, err)
			require.Equal(t, p, got)
		}
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		var procs []int
		var used []string
		see := func(proc int, usage string) { procs, used = append(procs, proc), append(used, usage) }
		require.NoError(t, tx.Usage("u", run.Attempt, 0, 0, see))
		require.Equal(t, []int{0, 1, 3}, procs)
		require.Equal(t, []string{"", "1 2", "1 2"}, used)
		procs = nil
		require.NoError(t, tx.Usage("u", run.Attempt, 1, 1, see))
		require.Equal(t, []int{1}, procs)
		return nil
	})
}
