package fetch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// htcd was killed after it had recorded that the output of these jobs is here, and before it let them leave the queue.
func TestTheJobsOfANamespaceWhoseCredentialsAreBrokenDoNotKeepThoseOfOthersInTheQueue(t *testing.T) {
	w := newWorld(t)
	for _, run := range []ledger.Run{w.completedIn("broken", "hers", 2), w.completedIn("default", "his", 2)} {
		for proc := range run.Procs {
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
				p, err := tx.Proc(run.UID, run.Attempt, proc)
				require.NoError(t, err)
				p.Fetched = ledger.IsFetched
				return tx.UpdateProc(p)
			}))
		}
	}
	for range 3 { // it is tried again as long as anything is left
		require.ErrorContains(t, w.TakeUp(t.Context()), "wrong password")
		require.Len(t, w.schedd.Jobs(), 2)
		for _, j := range w.schedd.Jobs() {
			require.Equal(t, "broken", j.Tag.Namespace)
		}
	}
	require.Len(t, w.unreleased.take("broken/hers"), 1, "what is left to be released is remembered once")
}

func TestJobsOfAnAccountThatIsNotTheCurrentOneLeaveTheQueueOnceItIsAgain(t *testing.T) {
	for name, factory := range map[string]int{"sent as one cluster": 0, "made by a factory": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.completed("one", 2)
			run.Factory = factory
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(run) }))
			owned := func(account string) {
				for proc := range run.Procs {
					w.schedd.Edit(run.Cluster, proc, func(j *condor.Job) { j.Owner = account })
				}
			}
			w.schedd.Fail(scheddtest.Release, scheddtest.Fault{Err: errors.New("no answer")})
			w.fetch("one")
			require.Zero(t, w.counts(run).Waiting)
			require.Len(t, w.schedd.Jobs(), 2)
			owned("another") // the Secret has another account now

			second := run
			second.Attempt, second.Cluster = 2, 7
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.InsertRun(second) }))
			w.completes(second)
			w.fetch("one")
			require.Zero(t, w.counts(second).Waiting, "what can be fetched is fetched")
			require.ErrorContains(t, w.inTheWay, "2 jobs of the account another, such as 1.0, cannot leave the queue")
			require.Len(t, w.schedd.Jobs(), 2)

			owned("")
			w.fetch("one")
			require.NoError(t, w.inTheWay)
			require.Empty(t, w.schedd.Jobs())
		})
	}
}

func TestJobsOfAttemptsThatTheLedgerHasLostLeaveTheQueue(t *testing.T) {
	for name, restored := range map[string]bool{"before a restored one": true, "before one that it knows": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.completed("one", 2)
			lost := condor.Tag{UID: run.UID, Attempt: run.Attempt}
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns(run.UID) }))
			run.Attempt, run.Cluster, run.Restored = 2, 7, restored
			for proc := range 2 {
				w.schedd.Put(condor.Job{Cluster: 7, Proc: proc, Tag: condor.Tag{UID: run.UID, Attempt: 2}})
			}
			w.schedd.Complete(7, -1, 0)
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
				return errors.Join(tx.InsertRun(run), tx.InsertProcs(run, 2))
			}))
			require.NoError(t, w.TakeUp(t.Context()))
			left := map[condor.Tag]int{}
			for _, j := range w.schedd.Jobs() {
				left[condor.Tag{UID: j.Tag.UID, Attempt: j.Tag.Attempt}]++
			}
			want := map[condor.Tag]int{lost: 2, {UID: run.UID, Attempt: 2}: 2}
			if restored {
				delete(want, lost)
			}
			require.Equal(t, want, left)
		})
	}
}
