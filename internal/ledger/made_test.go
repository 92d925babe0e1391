package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcsOfAFactoryGetRowsWhenTheyWereMade(t *testing.T) {
	for name, tc := range map[string]struct {
		sent    string
		jobs    int
		numbers []int
	}{
		"all jobs":  {"", 0, []int{0, 1, 2}},
		"some jobs": {"3,7-8", 3, []int{3, 7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := openTemp(t)
			run := testRun("u1")
			run.Factory, run.Sent, run.Jobs = 2, tc.sent, tc.jobs
			mustWrite(t, l, func(tx *Tx) error { return tx.InsertRun(run) })
			require.Equal(t, Counts{Active: 3, Waiting: 3}, countsOf(t, l))
			mustWrite(t, l, func(tx *Tx) error { return tx.AddMade(run, 1) })
			mustWrite(t, l, func(tx *Tx) error { return tx.AddMade(run, 1) })
			require.Equal(t, Counts{Active: 3, Waiting: 2}, countsOf(t, l))
			mustWrite(t, l, func(tx *Tx) error {
				p, err := tx.ProcByJobID("physics", "zero", "100.1", run.TokenHash)
				require.NoError(t, err, "a callback came first")
				require.Equal(t, tc.numbers[1], p.Proc)
				_, err = tx.ProcByJobID("physics", "zero", "100.3", run.TokenHash)
				require.ErrorIs(t, err, ErrNotFound)
				return nil
			})
			mustWrite(t, l, func(tx *Tx) error { return tx.AddMade(run, 99) })
			require.Equal(t, Counts{Active: 3}, countsOf(t, l))
			mustRead(t, l, func(tx *Tx) error {
				procs, err := tx.Procs("u1", 1, ProcFilter{})
				require.Len(t, procs, 3)
				for i, p := range procs {
					require.Equal(t, tc.numbers[i], p.Proc)
					_, place := p.Place()
					require.Equal(t, i, place)
				}
				return err
			})
		})
	}
}

func countsOf(t *testing.T, l *Ledger) (c Counts) {
	t.Helper()
	mustRead(t, l, func(tx *Tx) (err error) {
		c, err = tx.Counts("u1", 1)
		return err
	})
	return c
}
