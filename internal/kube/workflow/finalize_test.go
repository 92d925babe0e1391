package workflow

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestWhatIsGoneIsNotRemovedAgainWhileTheCacheShowsIt(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("one"))
	w.lags = true
	w.delete("one")
	w.later(time.Minute)
	removals := w.schedd.Calls(scheddtest.Remove)
	require.NotZero(t, removals)
	require.NotNil(t, w.flow("one"), "the cache still shows it")

	w.Changed.Add("default/one")
	w.later(time.Minute)
	require.Equal(t, removals, w.schedd.Calls(scheddtest.Remove))

	require.NoError(t, w.store.Delete(w.flow("one")))
	w.Changed.Add("default/one")
	w.settle()
	require.Zero(t, w.Memory.Len())
}

func TestTheOutputOfAWorkflowThatIsDeletedIsNotFetched(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Complete(1, 0, 0)
	require.NoError(t, w.Crosscheck(t.Context()))
	require.NoError(t, objects{w}.Delete(t.Context(), w.flow("flow")))
	key, _ := w.Changed.Get()
	w.SyncOne(t.Context(), key)
	w.Changed.Done(key)
	require.Zero(t, w.fetches.Len())
}

// The old queue is back just when it is asked whether the queue that was empty is younger than the DAG.
func TestADeletionDoesNotTakeAnEmptyQueueForTheOldOne(t *testing.T) {
	for name, ends := range map[string]bool{"while DAGMan's job is in the queue": false, "after DAGMan's job has ended": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flow := w.apply(newWorkflow("one"))
			w.passes(1)
			w.sends(1, 0, flow)
			if ends {
				w.schedd.Complete(1, 0, 0)
				w.schedd.Leave(1, 0)
				w.passes(1)
			}
			sent := w.schedd.Jobs()
			require.NotEmpty(t, sent)
			w.otherQueue(nil)
			back := false
			w.schedd.Fail(scheddtest.Daemon, scheddtest.Fault{First: func() { back = true; w.otherQueue(sent) }})
			w.deleteNow("one")
			for range 4 {
				w.later(2 * time.Minute)
			}
			require.True(t, back)
			require.Nil(t, w.flow("one"))
			require.Empty(t, w.schedd.Jobs())
		})
	}
}

func TestADeletionAlsoWaitsForTheQueueThatHasAnEndedDAGWithItsOutput(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Complete(1, 0, 0)
	w.schedd.Down(errors.New("no such directory"), scheddtest.Transfer)
	w.passes(1)
	w.schedd.Down(nil, scheddtest.Transfer)
	sent := w.schedd.Jobs()
	require.NotEmpty(t, sent)
	w.otherQueue(nil)
	w.deleteNow("flow")
	w.later(5 * time.Minute)
	require.NotNil(t, w.flow("flow"))
	w.otherQueue(sent)
	for range 4 {
		w.later(2 * time.Minute)
	}
	require.Nil(t, w.flow("flow"))
	require.Empty(t, w.schedd.Jobs())
}

// otherQueue has another process of the schedd answer a second later, with that queue; without jobs it is a new one.
func (w *world) otherQueue(jobs []condor.Job) {
	w.clock = w.clock.Add(time.Second)
	if w.schedd.Reset(); len(jobs) > 0 {
		w.schedd.Restore(jobs)
	}
	w.schedd.Restart()
}
