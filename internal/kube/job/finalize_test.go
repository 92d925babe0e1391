package job

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestDeletingRemovesTheJobsThenTheRowsThenTheFinalizer(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Down(errUnreachable)
	w.delete("one")
	require.NotNil(t, w.job("one"), "an unreachable schedd keeps the object")
	require.Contains(t, condition(w.job("one"), v1alpha1.ConditionBackendReachable).Message, v1alpha1.AbandonAnnotation)
	w.schedd.Down(nil)
	for range 2 {
		w.later(5 * time.Minute)
	}
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
	require.NoError(t, w.book.Read(t.Context(), func(tx *ledger.Tx) error {
		runs, err := tx.Runs(ledger.RunFilter{})
		require.Empty(t, runs)
		return err
	}))
	staged, err := os.ReadDir(w.Staging)
	require.NoError(t, err)
	require.Empty(t, staged)
}

func TestDeletingTakesBackNoEndThatWasTold(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.callback("one", 0, 0))
	job := w.job("one").DeepCopy()
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	run := &ledger.Run{State: ledger.Submitted, Attempt: 1, Cluster: 1, Procs: 1}
	removed := lifecycle.Situation{
		Job:      job,
		Run:      run,
		Counts:   ledger.Counts{Failed: 1},
		Failures: []ledger.Proc{{Reason: crosscheck.ReasonRemoved}},
	}
	require.Equal(
		t,
		v1alpha1.PhaseSucceeded,
		lifecycle.NewStatus(removed, lifecycle.View{Now: w.clock}).Phase,
		"its output was on its way",
	)
}

func TestDeletingTakesNothingBackBetweenRowsAndFinalizer(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.callback("one", 0, 1))
	before := w.job("one").Status
	require.Equal(t, v1alpha1.PhaseFailed, before.Phase)
	job := w.job("one").DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	job.Generation++
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns(string(job.UID)) }))
	s, err := w.gather(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, before, lifecycle.NewStatus(s, lifecycle.View{Now: w.clock}))
}

func TestWhatADeletionRemovesHasNotFailed(t *testing.T) {
	w := newWorld(t)
	before := w.apply(htcjob("one", queueOf(2))).Status
	require.EqualValues(t, 2, before.Active)
	job := w.job("one").DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	for _, attempt := range []int{1, 2} { // also if the status did not say yet that it was sent
		run := &ledger.Run{State: ledger.Submitted, Attempt: attempt, Cluster: 1, Procs: 2}
		removed := lifecycle.Situation{
			Job:      job,
			Run:      run,
			Counts:   ledger.Counts{Failed: 2},
			Failures: []ledger.Proc{{Reason: crosscheck.ReasonRemoved}},
		}
		require.Equal(t, before, lifecycle.NewStatus(removed, lifecycle.View{Now: w.clock}))
	}
}

func TestAnAbandonedHTCJobGoesAlthoughTheScheddDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Down(errUnreachable)
	job := w.job("one").DeepCopy()
	job.Annotations = map[string]string{v1alpha1.AbandonAnnotation: "true"}
	require.NoError(t, w.store.Update(job))
	w.delete("one")
	require.Nil(t, w.job("one"))
	require.Len(t, w.schedd.Jobs(), 1)
}

func TestAnHTCJobThatVanishedWhileHtcdWasAwayTakesItsJobsWithIt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.store.Delete(w.job("one")))
	w.restart()
	w.settle()
	require.Empty(t, w.schedd.Jobs())
}

func TestAnObjectThatReplacedAnotherOfItsNameDoesNotInheritItsJobs(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.apply(htcjob("one", func(job *v1alpha1.HTCJob) { job.UID = "uid-younger" }))
	w.later(time.Minute)
	job := w.job("one")
	require.Equal(t, []string{"2.0"}, job.Status.JobID)
	jobs := w.schedd.Jobs()
	require.Len(t, jobs, 1, "the older object's job is gone")
	require.Equal(t, "uid-younger", jobs[0].Tag.UID)
}

func TestDeletingAnHTCJobThatALostLedgerForgotRemovesItsJobs(t *testing.T) {
	w := newWorld(t)
	early := w.apply(htcjob("one")).DeepCopy()
	early.Status = v1alpha1.HTCJobStatus{} // it has just been sent
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	require.NoError(t, w.store.Update(early))
	w.restart()
	early.DeletionTimestamp = new(metav1.NewTime(w.clock))
	w.write(early)
	w.settle()
	w.later(5 * time.Second)
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
}

func TestWhatIsGoneIsNotRemovedAgainWhileTheCacheShowsIt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.lags = true
	w.delete("one")
	w.later(time.Minute)
	removals := w.schedd.Calls(scheddtest.Remove)
	require.NotNil(t, w.job("one"), "the cache still shows it")

	w.Changed.Add("default/one")
	w.later(time.Minute)
	require.Equal(t, removals, w.schedd.Calls(scheddtest.Remove))

	again := w.job("one").DeepCopy()
	again.ResourceVersion = "2"
	require.NoError(t, w.store.Update(again))
	w.Changed.Add("default/one")
	w.settle()
	require.Greater(t, w.schedd.Calls(scheddtest.Remove), removals, "it has our finalizer in a later version")

	require.NoError(t, w.store.Delete(again))
	w.Changed.Add("default/one")
	w.settle()
	require.Zero(t, w.Memory.Len())
}

func TestADeletionWaitsWhileTheScheddShowsAnotherQueue(t *testing.T) {
	for name, other := range otherQueues {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			sent := w.schedd.Jobs()
			w.clock = w.clock.Add(time.Second)
			other(w.schedd)
			w.delete("one")
			w.later(5 * time.Minute)
			require.NotNil(t, w.job("one"))
			w.schedd.Restore(sent)
			for range 3 {
				w.later(2 * time.Minute)
			}
			require.Nil(t, w.job("one"))
			require.Empty(t, w.schedd.Jobs())
		})
	}
}

func TestADeletionAlsoWaitsForTheQueueThatHasEndedJobsWithTheirOutput(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one"))
	w.completedUnfetched(1)
	sent := w.schedd.Jobs()
	require.NotEmpty(t, sent)
	w.otherQueue(nil)
	w.deleteNow("one")
	w.later(5 * time.Minute)
	require.NotNil(t, w.job("one"))
	w.otherQueue(sent)
	for range 3 {
		w.later(2 * time.Minute)
	}
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
}

func TestADeletionWaitsWhileTheScheddShowsAnotherQueueThoughTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	was := w.apply(htcjob("one", func(job *v1alpha1.HTCJob) { job.CreationTimestamp = metav1.NewTime(w.clock) }))
	sent := w.schedd.Jobs()
	w.clock = w.clock.Add(time.Second)
	w.schedd.Reset()
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns(string(was.UID)) }))
	w.restart()
	w.delete("one")
	w.later(5 * time.Minute)
	require.NotNil(t, w.job("one"))
	w.schedd.Restore(sent)
	for range 3 {
		w.later(2 * time.Minute)
	}
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
}

func TestADeletionIsOverAnHourAfterTheQueueIsGoneForGood(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.clock = w.clock.Add(time.Second)
	w.schedd.Reset()
	w.delete("one")
	w.later(30 * time.Minute)
	require.NotNil(t, w.job("one"))
	w.later(31 * time.Minute)
	require.Nil(t, w.job("one"))
}

// otherQueue has another process of the schedd answer a second later, with that queue; without jobs it is a new one.
func (w *world) otherQueue(jobs []condor.Job) {
	w.clock = w.clock.Add(time.Second)
	if w.schedd.Reset(); len(jobs) > 0 {
		w.schedd.Restore(jobs)
	}
	w.schedd.Restart()
}

// The old queue is back just when it is asked whether the queue that was empty is younger than the jobs.
func TestADeletionDoesNotTakeAnEmptyQueueForTheOldOne(t *testing.T) {
	for name, lost := range map[string]bool{"as the ledger knows": false, "though the ledger is lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(
				htcjob(
					"one",
					queueOf(2),
					func(job *v1alpha1.HTCJob) { job.CreationTimestamp = metav1.NewTime(w.clock) },
				),
			)
			w.schedd.Run(1, -1)
			sent := w.schedd.Jobs()
			w.otherQueue(nil)
			if lost {
				require.NoError(
					t,
					w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }),
				)
				w.restart()
			}
			back := false
			w.schedd.Fail(scheddtest.Daemon, scheddtest.Fault{First: func() { back = true; w.otherQueue(sent) }})
			w.deleteNow("one")
			require.True(t, back)
			require.NotNil(t, w.job("one"))
			for range 3 {
				w.later(2 * time.Minute)
			}
			require.Nil(t, w.job("one"))
			require.Empty(t, w.schedd.Jobs())
		})
	}
}

func TestADeletionWaitsForTheAgeOfTheQueue(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	sent := w.schedd.Jobs()
	w.otherQueue(nil)
	w.schedd.Down(errUnreachable, scheddtest.Daemon)
	w.delete("one")
	for range 3 {
		w.later(time.Hour)
	}
	require.NotNil(t, w.job("one"))
	w.schedd.Down(nil, scheddtest.Daemon)
	w.otherQueue(sent)
	for range 3 {
		w.later(2 * time.Minute)
	}
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
}

func TestADeletionAsksNoMoreThanItMust(t *testing.T) {
	nothing := func(*world) {}
	ended := func(w *world) { w.completes(1); w.schedd.Leave(1, 0) }
	leaving := func(w *world) { w.schedd.Edit(1, 0, func(j *condor.Job) { j.Status = condor.Removed }) }
	for name, c := range map[string]struct {
		happens func(*world)
		leaves  func(*world)
		queues  int // questions about the queue, each after a condor_rm
		daemons int
	}{
		"its job has ended":                       {ended, nothing, 1, 0},
		"it runs, and is gone at once":            {nothing, nothing, 2, 2},
		"it runs, and is shown while it leaves":   {leaving, func(w *world) { w.schedd.Leave(1, 0) }, 2, 2},
		"it is refused, so that nothing was sent": {nil, nothing, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.happens == nil {
				w.apply(htcjob("one", func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "no_such_command = 1" }))
			} else {
				w.apply(htcjob("one"))
				c.happens(w)
			}
			w.clock = w.clock.Add(time.Second)
			asked, told, removed := w.schedd.Calls(scheddtest.Queue), w.schedd.Calls(scheddtest.Daemon),
				w.schedd.Calls(scheddtest.Remove)
			w.deleteNow("one")
			c.leaves(w)
			for range 3 {
				w.later(recovery.AbsentTwice)
			}
			require.Nil(t, w.job("one"))
			require.Equal(t, c.queues, w.schedd.Calls(scheddtest.Remove)-removed)
			require.Equal(t, c.queues, w.schedd.Calls(scheddtest.Queue)-asked)
			require.Equal(t, c.daemons, w.schedd.Calls(scheddtest.Daemon)-told)
		})
	}
}
