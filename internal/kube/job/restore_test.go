package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// loseLedger restarts htcd with an empty ledger.
func (w *world) loseLedger() {
	w.t.Helper()
	book := ledgertest.Open(w.t)
	w.book, w.Ledger = book, book
	w.restart()
	w.settle()
}

func TestWhatEndedBeforeTheLedgerWasLostIsFetched(t *testing.T) {
	for name, ended := range map[string]func(*world){
		"by its callback": func(w *world) {
			w.schedd.Run(1, -1)
			require.NoError(w.t, w.callback("one", 0, 3))
			require.NoError(w.t, w.callback("one", 1, 0))
			w.completed(1, 3)
		},
		"by HTCondor's word": func(w *world) { w.completedUnfetched(1, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t)
			w.apply(htcjob("one", queueOf(2)))
			ended(w)
			require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
			require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
			w.loseLedger()
			w.crosscheck()
			require.Equal(t, "True Fetched: the output of 2 jobs is here", w.fetched("one"))
			require.Equal(t, "out of 1.1\n", w.kept("one", 1, 1, output.Stdout))
			require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
			require.Empty(t, w.schedd.Jobs())
		})
	}
}

func TestWhatWasFetchedBeforeTheLedgerWasLostIsNotAskedFor(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completed(1)
	w.crosscheck()
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
	w.loseLedger()
	w.crosscheck()
	require.Equal(t, "True Fetched: the output of 1 job is here", w.fetched("one"))
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Transfer))
}

func TestOutputOfWhichNobodyKnowsAnyMoreIsGivenUp(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.schedd.Run(1, -1)
	require.NoError(t, w.callback("one", 0, 0))
	w.loseLedger()
	w.schedd.Lose(1, 0)
	w.crosscheck()
	w.clock = w.clock.Add(2 * crosscheck.LostAfter)
	w.crosscheck()
	w.clock = w.clock.Add(recovery.AbsentTwice)
	w.fetchAgain("one")
	require.Contains(t, w.fetched("one"), "False GivenUp: ")
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase, "its end stands")
	asked := w.schedd.Calls(scheddtest.History)
	w.crosscheck()
	require.Equal(t, asked, w.schedd.Calls(scheddtest.History), "nobody is asked about it any more")
}

// suspendedAfterOne applies an HTCJob with two jobs and suspends it after one of them has ended.
func (w *world) suspendedAfterOne(name string) {
	w.t.Helper()
	w.apply(htcjob(name, queueOf(2)))
	w.schedd.Run(1, -1)
	w.schedd.Complete(1, 0, 0)
	job := w.job(name).DeepCopy()
	job.Spec.Suspend, job.Generation = true, 2
	w.write(job)
	w.settle()
	w.later(time.Minute)
	require.Equal(w.t, v1alpha1.PhaseSuspended, w.job(name).Status.Phase)
}

func TestJobsOfASuspendedRunThatWereKeptLeaveTheQueue(t *testing.T) {
	w := newWorldWithOutput(t)
	w.schedd.Down(errBroken, scheddtest.Release)
	w.suspendedAfterOne("one")
	require.Equal(t, ledger.IsFetched, w.proc("one", 1, 0).Fetched)
	require.Len(t, w.schedd.Jobs(), 1)
	w.schedd.Down(nil, scheddtest.Release)
	w.restart() // it was killed in between
	require.NoError(t, w.fetcher.Resume(t.Context()))
	w.crosscheck()
	require.Empty(t, w.schedd.Jobs())
}

func TestWhatEndedBeforeASuspensionIsFetchedAfterTheLedgerWasLost(t *testing.T) {
	w := newWorldWithOutput(t)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.suspendedAfterOne("one")
	require.Equal(t, "absent", w.kept("one", 1, 0, output.Stdout))
	w.schedd.Down(nil, scheddtest.Transfer)
	w.loseLedger()
	w.crosscheck()
	require.Equal(t, "out of 1.0\n", w.kept("one", 1, 0, output.Stdout))
	require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
	require.Empty(t, w.schedd.Jobs())
}
