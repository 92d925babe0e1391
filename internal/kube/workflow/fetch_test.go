package workflow

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// fetched returns what the ledger says of the output of a DAG.
func (w *world) fetched(name string, dag int) ledger.Fetched {
	var job ledger.Proc
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		job, err = tx.Proc("uid-"+name, dag, 0)
		return err
	}))
	return job.Fetched
}

// fetchAgain does what follows the back-off of a fetch, twice, as two answers must say that a job is gone.
func (w *world) fetchAgain(name string) {
	for range 2 {
		w.clock = w.clock.Add(time.Minute)
		w.fetches.Add("default/" + name)
		w.settle()
	}
}

func TestANamespaceOfWhichNothingIsFetchedDoesNotWaitForOthers(t *testing.T) {
	w := newWorld(t)
	began, letGo, over := make(chan string, 9), make(chan struct{}), make(chan struct{})
	w.fetchers.Serve = func(_ context.Context, keys []string) {
		began <- keys[0]
		if keys[0] != "quick/one" {
			<-letGo
		}
	}
	go func() { w.fetchers.Run(t.Context()); close(over) }()
	w.fetches.Add("slow/first")
	require.Equal(t, "slow/first", <-began)
	w.fetches.Add("slow/second")
	w.fetches.Add("quick/one")
	require.Equal(t, "quick/one", <-began)
	close(letGo)
	require.Equal(t, "slow/second", <-began)
	w.fetches.ShutDown()
	<-over
}

func TestADAGThatIsFetchedLeavesTheQueueThoughHtcdOrTheScheddDies(t *testing.T) {
	for name, c := range map[string]struct {
		died  scheddtest.Fault
		there int // DAGs that are still in the queue then
	}{
		"the schedd before it let the DAG go": {scheddtest.Fault{Err: errors.New("no answer")}, 1},
		"htcd after the schedd let it go":     {scheddtest.Fault{Err: errors.New("no answer"), After: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(oneStep("flow"))
			w.schedd.Fail(scheddtest.Release, c.died)
			w.ends(1)
			require.Len(t, w.schedd.Jobs(), c.there)
			require.Equal(t, ledger.NotFetched, w.fetched("flow", 1))

			w.restart()
			w.later(time.Minute)
			w.fetchAgain("flow")
			require.Empty(t, w.schedd.Jobs())
			require.Equal(t, ledger.IsFetched, w.fetched("flow", 1))
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Transfer), "what has arrived is not fetched again")
			reason, _ := w.says("flow", v1alpha1.ConditionOutputFetched)
			require.Equal(t, "Fetched", reason)
		})
	}
}

// HTCondor has nothing to bring of a DAG that was removed before its launcher had made the directories.
func TestADAGWhoseNodesNeverRanIsLetGoWithoutAFetch(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Fail(scheddtest.Release, scheddtest.Fault{Err: errors.New("no answer")})
	w.schedd.Down(errors.New("no such directory"), scheddtest.Transfer)
	w.suspend("flow", true)
	w.schedd.Put(w.schedd.Gone()...)
	w.fetchAgain("flow")
	require.Equal(t, ledger.IsFetched, w.fetched("flow", 1))
	require.Empty(t, w.schedd.Jobs())
	require.Zero(t, w.schedd.Calls(scheddtest.Transfer))
}

func TestOutputThatCannotBeBroughtDoesNotHoldUpThatOfTheNextAttempt(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Down(errors.New("no answer"), scheddtest.Transfer)
	w.ends(1)
	again := w.flow("flow").DeepCopy()
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"}
	require.NoError(t, w.store.Update(again))
	w.later(time.Minute)
	w.ends(2)
	w.schedd.Down(nil, scheddtest.Transfer)
	w.schedd.Fail(scheddtest.Transfer, scheddtest.Fault{
		Err: &schedd.TransferError{Err: &condor.Error{Stderr: "reading from file /spool/n: (errno 2)"}},
	})
	w.clock = w.clock.Add(time.Minute)
	w.fetchOne(t.Context(), "default/flow") // settle would do so again, once the back-off is over by the real clock
	require.Equal(t, ledger.NotFetched, w.fetched("flow", 1))
	require.Equal(t, ledger.IsFetched, w.fetched("flow", 2))
	w.fetchAgain("flow")
	require.Equal(t, ledger.IsFetched, w.fetched("flow", 1))
}

func TestOutputIsGivenUpOnlyIfTheDAGHasLeftTheQueue(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Edit(1, 0, func(j *condor.Job) { j.Owner = "another" })
	w.ends(1)
	require.Equal(t, ledger.NotFetched, w.fetched("flow", 1))
	_, message := w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Contains(t, message, "of the account another")
	w.schedd.Lose(1, 0)
	w.restart()
	w.later(time.Minute)
	require.Equal(t, ledger.NotFetched, w.fetched("flow", 1))
	w.fetchAgain("flow")
	_, message = w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Equal(t, ledger.GivenUp, w.fetched("flow", 1), message)
}

func TestADAGStaysFetchableUntilItsOwnAccountLetsItGo(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Fail(scheddtest.Release, scheddtest.Fault{Err: errors.New("no answer")})
	w.ends(1)
	owner := w.schedd.Jobs()[0].Owner
	w.schedd.Edit(1, 0, func(j *condor.Job) { j.Owner = "another" }) // the Secret has another account
	w.restart()
	w.later(time.Minute)
	require.Equal(t, ledger.NotFetched, w.fetched("flow", 1))
	_, message := w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Contains(t, message, "of the account another")

	w.schedd.Edit(1, 0, func(j *condor.Job) { j.Owner = owner })
	w.restart()
	w.later(time.Minute)
	require.Empty(t, w.schedd.Jobs())
	require.Equal(t, ledger.IsFetched, w.fetched("flow", 1))
}
