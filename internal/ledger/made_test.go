package ledger

import (
	"errors"
	"fmt"
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

func TestProcsThatAFactoryDoesNotMakeFailWithoutRows(t *testing.T) {
	as := Proc{Status: StatusFailed, Reason: "Suspended", Message: "m", Source: "s", Changed: noon}
	for _, sent := range []string{"", fmt.Sprintf("5-%d", mostUnmade+14)} {
		l, _ := openTemp(t)
		run := testRun("u1")
		run.Factory, run.Procs, run.Sent, run.Stop = 2, mostUnmade+10, sent, "Suspended"
		mustWrite(t, l, func(tx *Tx) error { return tx.InsertRun(run) })
		end := func(rows int) (calls int) {
			for more := true; more; calls++ {
				mustWrite(t, l, func(tx *Tx) (err error) {
					more, err = tx.EndUnmade(run, 3, rows, as)
					return err
				})
			}
			return calls
		}
		are := func(rows int) {
			t.Helper()
			require.Equal(t, Counts{Active: 3, Failed: run.Procs - 3}, countsOf(t, l))
			mustRead(t, l, func(tx *Tx) error {
				n, err := tx.CountReason("u1", 1, "Suspended")
				require.NoError(t, err)
				require.Equal(t, run.Procs-3, n)
				past, err := tx.History(PastFilter{})
				require.NoError(t, err)
				require.Equal(t, run.Procs-3, past[0].Failed)
				procs, err := tx.Procs("u1", 1, ProcFilter{Reason: "Suspended"})
				require.Len(t, procs, rows-3)
				return err
			})
		}
		require.Equal(t, 1, end(0))
		are(3)
		require.Equal(t, 1, end(5))
		are(5)
		mustRead(t, l, func(tx *Tx) error {
			procs, err := tx.Procs("u1", 1, ProcFilter{Reason: "Suspended", Limit: 1})
			require.Equal(t, "100.3", procs[0].JobID())
			require.Equal(t, []any{"m", "s", noon}, []any{procs[0].Message, procs[0].Source, procs[0].Changed})
			return err
		})
		require.Equal(t, 2, end(run.Procs))
		are(run.Procs)
	}
}

func TestAJobThatWasMadeAfterAllGetsItsRow(t *testing.T) {
	l, _ := openTemp(t)
	run := testRun("u1")
	run.Factory, run.Procs, run.Stop = 2, 10, "Suspended"
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.InsertRun(run))
		_, err := tx.EndUnmade(run, 3, 0, Proc{})
		return errors.Join(err, tx.AddMade(run, 2), tx.AddMade(run, 4))
	})
	require.Equal(t, Counts{Active: 4, Failed: 6}, countsOf(t, l))
	mustWrite(t, l, func(tx *Tx) error { return tx.MakeAgain(run) })
	require.Equal(t, Counts{Active: 10, Waiting: 6}, countsOf(t, l))
}

// A factory of many jobs that somebody has removed must not get a row for each of them.
func TestJobsOfAFactoryThatHasGoneAreLookedForUntilAllThatMayBeThereAreLost(t *testing.T) {
	l, _ := openTemp(t)
	run := testRun("u1")
	run.Factory, run.Procs = 2, 1000
	end := func(from int, reason string) func(*Tx) error {
		return func(tx *Tx) error {
			procs, err := tx.Procs("u1", 1, ProcFilter{From: from})
			for _, p := range procs {
				p.Status, p.Reason = StatusFailed, reason
				err = errors.Join(err, tx.UpdateProc(p))
			}
			return err
		}
	}
	gone := func(tx *Tx) error { return tx.AddGone(run, 4) }
	mustWrite(t, l, func(tx *Tx) error { return errors.Join(tx.InsertRun(run), tx.AddMade(run, 2)) })
	mustWrite(t, l, gone)
	require.Equal(t, Counts{Active: 1000, Waiting: 998}, countsOf(t, l), "what has rows may say more first")
	mustWrite(t, l, end(0, "Removed"))
	mustWrite(t, l, gone)
	require.Equal(t, Counts{Active: 998, Failed: 2, Waiting: 994}, countsOf(t, l))
	mustWrite(t, l, end(2, "Removed"))
	mustWrite(t, l, gone)
	require.Equal(t, Counts{Active: 994, Failed: 6, Waiting: 988}, countsOf(t, l))
	mustWrite(t, l, end(6, "Lost"))
	mustWrite(t, l, gone)
	mustWrite(t, l, gone)
	require.Equal(t, Counts{Failed: 1000}, countsOf(t, l))
	mustRead(t, l, func(tx *Tx) error {
		procs, err := tx.Procs("u1", 1, ProcFilter{})
		require.Len(t, procs, 12)
		return err
	})
}

func TestJobsOfAStoppedFactoryThatHasGoneAreLost(t *testing.T) {
	l, _ := openTemp(t)
	run := testRun("u1")
	run.Factory, run.Procs, run.Stop = 2, 1000, "Suspended"
	end := func(absent int) {
		mustWrite(t, l, func(tx *Tx) error {
			procs, err := tx.Procs("u1", 1, ProcFilter{Status: StatusOpen})
			for _, p := range procs {
				p.Status, p.Reason, p.Absent = StatusFailed, run.Stop, absent
				err = errors.Join(err, tx.UpdateProc(p))
			}
			return err
		})
	}
	gone := func(tx *Tx) error { return tx.AddGone(run, 4) }
	mustWrite(t, l, func(tx *Tx) error { return errors.Join(tx.InsertRun(run), tx.AddMade(run, 4)) })
	end(0)
	mustWrite(t, l, gone)
	require.Equal(t, Counts{Active: 996, Failed: 4, Waiting: 992}, countsOf(t, l), "HTCondor has shown those")
	end(1)
	mustWrite(t, l, gone)
	require.Equal(t, Counts{Failed: 1000}, countsOf(t, l))
	mustRead(t, l, func(tx *Tx) error {
		n, err := tx.CountReason("u1", 1, "Suspended")
		require.Equal(t, 1000, n)
		return err
	})
}

// Rows that are added one by one, as callbacks come before the cross-check, must not each cost what all before have
// cost: this would take an hour.
func TestAFactoryOfManyJobsGetsItsRowsOneByOne(t *testing.T) {
	const many, more = 20_000, 200
	for _, sent := range []string{"", fmt.Sprintf("5-%d", 5+2*many)} {
		l, _ := openTemp(t)
		run := testRun("u1")
		run.Factory, run.Procs, run.Sent = 1000, 2*many, sent
		mustWrite(t, l, func(tx *Tx) error { return errors.Join(tx.InsertRun(run), tx.AddMade(run, many)) })
		mustWrite(t, l, func(tx *Tx) error {
			for i := range more {
				if err := tx.AddMade(run, many+i+1); err != nil {
					return err
				}
			}
			return nil
		})
		require.Equal(t, Counts{Active: 2 * many, Waiting: many - more}, countsOf(t, l))
	}
}

func TestAFactoryThatIsOnItsWayUsesAPoolForOneJob(t *testing.T) {
	l, _ := openTemp(t)
	run := testRun("u1")
	run.Factory, run.Procs, run.Pool, run.State = 50, 1000, "grid", Intent
	other := testRun("u2")
	other.Factory, other.FactoryIdle, other.Procs, other.Pool, other.Name = 50, 20, 5, "grid", "other"
	mustWrite(t, l, func(tx *Tx) error { return errors.Join(tx.InsertRun(run), tx.InsertRun(other)) })
	mustRead(t, l, func(tx *Tx) error {
		use, err := tx.PoolUse("grid")
		require.NoError(t, err)
		require.Len(t, use, 1)
		require.Equal(t, 1, use[0].Open())
		all, err := tx.PoolFactories("grid")
		require.Equal(t, []PoolFactory{{"u2", "physics", "", 50, 20, 0, 0, 0, 0, 5}}, all)
		return err
	})
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.AddMade(other, 4))
		for proc, status := range []int{jobIdle, jobRunning, jobHeld} {
			p := Proc{UID: "u2", Attempt: 1, Proc: proc, Status: StatusOpen, JobStatus: status}
			require.NoError(t, tx.UpdateProc(p))
		}
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		all, err := tx.PoolFactories("grid")
		require.Equal(t, []PoolFactory{{"u2", "physics", "", 50, 20, 4, 2, 1, 3, 1}}, all)
		return err
	})
}

func countsOf(t *testing.T, l *Ledger) (c Counts) {
	t.Helper()
	mustRead(t, l, func(tx *Tx) (err error) {
		c, err = tx.Counts("u1", 1)
		return err
	})
	return c
}
