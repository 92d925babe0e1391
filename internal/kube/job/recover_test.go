package job

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestWhateverBreaksASubmitOffItIsSentOnce(t *testing.T) {
	for name, fault := range map[string]scheddtest.Fault{
		"killed after the schedd had everything": {Err: errBroken, After: true},
		"killed before the schedd had anything":  {Err: errBroken},
		"the schedd did not answer":              {Err: errUnreachable},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.schedd.Fail(scheddtest.Submit, fault)
				job := w.apply(htcjob("one"))
				require.Equal(t, v1alpha1.PhaseSubmitting, job.Status.Phase)
				if restart {
					w.restart()
				}
				for range 3 {
					w.later(5 * time.Second)
				}
				require.Equal(t, v1alpha1.PhaseIdle, w.job("one").Status.Phase)
				require.Len(t, w.schedd.Jobs(), 1)
			})
		}
	}
}

// otherQueues are those that a schedd may show in place of its own.
var otherQueues = map[string]func(*scheddtest.Schedd){
	"one that was set up since":       (*scheddtest.Schedd).Reset,
	"one that was set up long before": (*scheddtest.Schedd).Swap,
}

func TestNothingIsSentAgainWhileTheScheddShowsAnotherQueue(t *testing.T) {
	for name, other := range otherQueues {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
			w.apply(htcjob("one"))
			sent := w.schedd.Jobs()
			require.Len(t, sent, 1)
			w.restart()
			w.clock = w.clock.Add(time.Second)
			other(w.schedd)
			for range 3 {
				w.later(time.Minute)
			}
			require.Empty(t, w.schedd.Jobs())
			require.Contains(
				t,
				condition(w.job("one"), v1alpha1.ConditionSubmitted).Message,
				"it has another queue than when the attempt began",
			)
			w.schedd.Restore(sent)
			w.later(2 * time.Minute)
			require.Equal(t, sent[0].Cluster, w.run("one").Cluster)
			require.Len(t, w.schedd.Jobs(), 1)
			w.deleteNow("one")
			w.later(2 * recovery.AbsentTwice)
			require.Nil(t, w.job("one"), "its own queue is not doubted")
		})
	}
}

func TestWhatAQueueThatIsGoneForGoodHadIsSentAfterAnHour(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("one"))
	w.clock = w.clock.Add(time.Second)
	w.schedd.Reset()
	w.later(30 * time.Minute)
	require.Empty(t, w.schedd.Jobs())
	for range 3 {
		w.later(30 * time.Minute)
	}
	require.Len(t, w.schedd.Jobs(), 1)
}

func TestAFormerLeaderTakesNothingBackOfWhatTheNextHasRecorded(t *testing.T) {
	w := newWorld(t)
	job := w.apply(htcjob("one"))
	var recorded ledger.Run
	require.NoError(t, w.book.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		recorded, err = tx.LatestRun("uid-one")
		return err
	}))
	asleep := recorded // as it was when the previous leader decided
	asleep.State, asleep.Cluster = ledger.Intent, 0
	require.ErrorIs(t, w.sendAgain(t.Context(), job, asleep), ledger.ErrWentOn)
	require.ErrorIs(t, w.recordCluster(t.Context(), job, asleep, condor.Cluster{ID: 9, Procs: 1}), ledger.ErrWentOn)
	w.later(time.Minute)
	require.Equal(t, []string{"1.0"}, w.job("one").Status.JobID)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

	// If an older htcd did so nevertheless, the cluster is found again and its rows are kept.
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(asleep) }))
	w.later(time.Minute)
	require.Equal(t, []string{"1.0"}, w.job("one").Status.JobID)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestNothingIsBegunWhileTheScheddDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.schedd.Down(errUnreachable)
	job := w.apply(htcjob("early"))
	require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
	require.NoError(t, w.book.Read(t.Context(), func(tx *ledger.Tx) error {
		runs, err := tx.Runs(ledger.RunFilter{})
		require.Empty(t, runs)
		return err
	}))

	w.schedd.Down(nil)
	w.later(time.Minute)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("early").Status.Phase)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestNothingIsSentAgainWhileTheScheddDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.schedd.Down(errUnreachable)
	w.apply(htcjob("one"))
	for range 5 {
		w.later(time.Minute)
	}
	job := w.job("one")
	require.Equal(t, metav1.ConditionFalse, condition(job, v1alpha1.ConditionBackendReachable).Status)
	require.Contains(t, condition(job, v1alpha1.ConditionBackendReachable).Message, "Can't find address")
	w.schedd.Down(nil)
	for range 3 {
		w.later(time.Minute)
	}
	require.Len(t, w.schedd.Jobs(), 1)
	require.Equal(t, metav1.ConditionTrue, condition(w.job("one"), v1alpha1.ConditionBackendReachable).Status)
}

func TestAScheddThatIsBackIsAskedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("open"))
	w.schedd.Down(errUnreachable)
	w.apply(htcjob("waiting"))
	for range 8 { // until the back-off is long
		w.later(time.Minute)
	}
	w.schedd.Down(nil)
	w.clock = w.clock.Add(time.Second)
	require.NoError(t, w.Refresh(t.Context()))
	w.settle()
	w.later(recovery.AbsentTwice + time.Second)
	require.Len(t, w.schedd.Jobs(), 2)
}

func TestAHalfSpooledClusterIsRemovedBeforeItsRunIsSentAgain(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("one"))
	w.schedd.Edit(1, -1, func(j *condor.Job) {
		j.Status, j.HoldReasonCode, j.StageInFinish = condor.Held, 16, 0
	})
	w.later(5 * time.Second)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit), "it may still be spooling")
	w.later(2 * time.Minute)
	require.Empty(t, w.schedd.Jobs())
	for range 3 {
		w.later(5 * time.Second)
	}
	require.EqualValues(t, 2, w.job("one").Status.ClusterID, "what was removed is not taken for the run")
	require.EqualValues(t, 1, w.job("one").Status.Attempt)
}

// overtaken is a schedd that calls a function between the query for a cluster and its removal.
type overtaken struct {
	*scheddtest.Schedd
	meanwhile func()
}

func (s overtaken) Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error) {
	if _, is := c.(schedd.Remove); is {
		s.meanwhile()
	}
	return s.Schedd.Change(ctx, id, c)
}

func TestAFormerLeaderRemovesNothingThatTheNextHasSent(t *testing.T) {
	for name, look := range map[string]struct {
		submit []scheddtest.Fault // what interrupts the submission
		look   func(w *world)
	}{
		"while it looks for an attempt": {[]scheddtest.Fault{{Err: errBroken, After: true}}, func(w *world) { w.later(2 * time.Minute) }},
		"during a cross-check":          {nil, func(w *world) { w.clock = w.clock.Add(2 * time.Minute); w.crosscheck() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.schedd.Fail(scheddtest.Submit, look.submit...)
			w.apply(htcjob("one"))
			w.schedd.Edit(1, -1, func(j *condor.Job) {
				j.Status, j.HoldReasonCode, j.StageInFinish = condor.Held, 16, 0
			})
			w.asks(overtaken{w.schedd, func() {
				again := condor.Tag{UID: "uid-one", Attempt: 1, Namespace: "default", Name: "one"}
				w.schedd.Put(
					condor.Job{Cluster: 7, Tag: again, Owner: scheddtest.Robot, Status: condor.Idle, StageInFinish: 1},
				)
			}})
			look.look(w)
			require.NotEmpty(t, w.schedd.Jobs())
			for _, j := range w.schedd.Jobs() {
				require.Equal(t, 7, j.Cluster)
			}
		})
	}
}

func TestALostLedgerIsRebuiltFromObjectsAndTags(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	w.restart()
	w.settle()
	job := w.job("one")
	require.Equal(t, []string{"1.0"}, job.Status.JobID)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
	w.schedd.Complete(1, 0, 0)
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
}

func TestAnAdoptedClusterHasRunSinceTheScheddTookIt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", func(job *v1alpha1.HTCJob) { job.Spec.ActiveDeadlineSeconds = new(int64(3600)) }))
	sent := w.clock.Truncate(time.Second)
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	job := w.job("one").DeepCopy()
	job.Status = v1alpha1.HTCJobStatus{}
	require.NoError(t, w.store.Update(job))
	w.clock = w.clock.Add(50 * time.Minute)
	w.restart()
	w.settle()
	require.Equal(t, []string{"1.0"}, w.job("one").Status.JobID)
	require.True(
		t,
		w.job("one").Status.StartTime.Time.Equal(sent),
		"%s instead of %s",
		w.job("one").Status.StartTime,
		sent,
	)
	w.later(11 * time.Minute)
	require.Equal(t, "DeadlineExceeded", condition(w.job("one"), v1alpha1.ConditionFailed).Reason)
}

func TestWithALostLedgerTheStatusStaysAndNothingIsSentAgain(t *testing.T) {
	for name, happens := range map[string]func(w *world){
		"ended": func(w *world) {
			require.NoError(t, w.ends("one", 0, 0))
			require.NoError(t, w.ends("one", 1, 3))
			require.NoError(t, w.ends("one", 2, 4))
		},
		"still open": func(w *world) { w.crosscheck() },
		"refused": func(w *world) {
			bad := w.job("one").DeepCopy()
			require.NoError(t, w.ends("one", 0, 0))
			require.NoError(t, w.ends("one", 1, 0))
			require.NoError(t, w.ends("one", 2, 0))
			bad.Generation, bad.Spec.HTCOpts = 2, "executable = /bin/sh"
			w.apply(bad)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one", queueOf(3)))
			happens(w)
			before := w.job("one").Status
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
			w.schedd.Lose(1, -1) // not even the schedd knows it now
			w.restart()
			w.settle()
			w.later(time.Hour)
			after := w.job("one").Status
			before.Conditions, after.Conditions = nil, nil
			before.Idle = 0 // not known until the schedd is asked again
			require.Equal(t, before, after)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestAfterALostLedgerALaterAttemptIsLookedForBeforeItIsSent(t *testing.T) {
	for name, sends := range map[string]func(w *world) *v1alpha1.HTCJob{
		"the status speaks of the attempt before": func(w *world) *v1alpha1.HTCJob {
			require.NoError(t, w.callback("one", 0, 0))
			return w.job("one").DeepCopy()
		},
		"the status speaks of no attempt": func(w *world) *v1alpha1.HTCJob {
			require.NoError(t, w.callback("one", 0, 0))
			early := w.job("one").DeepCopy()
			early.Status = v1alpha1.HTCJobStatus{}
			return early
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			w.schedd.Complete(1, 0, 0)
			stale := sends(w)
			changed := w.job("one").DeepCopy()
			changed.Generation, stale.Generation = 2, 2
			changed.Spec.Script.Source, stale.Spec.Script.Source = "true\n", "true\n"
			require.EqualValues(t, 2, w.apply(changed).Status.Attempt)
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))

			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
			require.NoError(t, w.store.Update(stale))
			w.restart()
			w.settle()
			for range 3 {
				w.later(5 * time.Second)
			}
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
			require.EqualValues(t, 2, w.job("one").Status.Attempt)
			require.Equal(t, []string{"2.0"}, w.job("one").Status.JobID)
		})
	}
}

func TestAClusterThatLostItsFilesIsSentAsANewAttempt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Edit(1, 0, func(j *condor.Job) {
		j.LastStatus, j.Status, j.RemoveReason, j.StageInFinish = condor.Held, condor.Removed, "Staging of job files failed", 0
	})
	w.schedd.Leave(1, 0)
	w.crosscheck()
	job := w.job("one")
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, []string{"2.0"}, job.Status.JobID)
	require.Zero(t, job.Status.Failed)
}

// The schedd receives the files of a cluster together but marks its procs as spooled one by one.
func TestAClusterOfWhichOnlySomeProcsGotTheirFilesIsNotSentAgain(t *testing.T) {
	stuck := func(j *condor.Job) { j.Status, j.HoldReasonCode, j.StageInFinish = condor.Held, 16, 0 }
	broken := []scheddtest.Fault{{Err: errBroken, After: true}}
	forgets := func(w *world) {
		w.do(func(job *v1alpha1.HTCJob) { job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending} })
		w.loseLedger()
	}
	for name, c := range map[string]struct {
		submit []scheddtest.Fault
		ran    func(*world)
	}{
		"the first has ended": {nil, func(w *world) { w.schedd.Complete(1, 0, 0) }},
		"its callback alone came": {nil, func(w *world) {
			w.schedd.Run(1, 0)
			require.NoError(w.t, w.callback("one", 0, 0))
			w.schedd.Complete(1, 0, 0)
		}},
		"the first is confirmed and out of the queue":    {nil, func(w *world) { w.completes(1); w.schedd.Leave(1, 0); w.crosscheck() }},
		"the end of the submission was not seen":         {broken, func(w *world) { w.schedd.Complete(1, 0, 0) }},
		"they are out of the queue by the schedd's hand": {nil, func(w *world) { w.schedd.Complete(1, 0, 0); w.stagingFailed(1); w.stagingFailed(2) }},
		"they are out of the queue before it is adopted": {broken, func(w *world) { w.schedd.Complete(1, 0, 0); w.stagingFailed(1); w.stagingFailed(2) }},
		"nor does the ledger know how many there are":    {broken, func(w *world) { w.schedd.Complete(1, 0, 0); w.stagingFailed(1); w.stagingFailed(2); forgets(w) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.schedd.Fail(scheddtest.Submit, c.submit...)
			w.apply(htcjob("one", queueOf(3)))
			w.schedd.Edit(1, 1, stuck)
			w.schedd.Edit(1, 2, stuck)
			c.ran(w)
			for range 4 {
				w.later(time.Minute)
				w.crosscheck()
			}
			job := w.job("one")
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit), "what ran is not run again")
			require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
			require.Equal(t, []int32{0, 1, 2}, counts(job))
			require.Equal(t, crosscheck.ReasonStagingFailed, job.Status.Failures[0].Reason)
			require.Contains(t, job.Status.Failures[0].Message, "never ran")
		})
	}
}

// The schedd had no trace of the first attempt, which was then refused.
func TestWhenAnEarlierAttemptWasNotFoundSaysNothingAboutALaterOne(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.apply(htcjob("one"))
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.HTCOpts = "executable = /bin/sh" })
	for range 3 {
		w.later(10 * time.Second)
	}
	require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
	w.later(2 * time.Hour)
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.HTCOpts = "" })
	sent := w.schedd.Jobs()
	require.Len(t, sent, 1)
	w.clock = w.clock.Add(time.Second)
	w.schedd.Reset()
	w.delete("one")
	w.later(5 * time.Minute)
	require.NotNil(t, w.job("one"), "its job may be there again")
	w.schedd.Restore(sent)
	for range 3 {
		w.later(2 * time.Minute)
	}
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
}

// stagingFailed does what a schedd does with a job whose files did not arrive.
func (w *world) stagingFailed(proc int) {
	w.schedd.Edit(1, proc, func(j *condor.Job) {
		j.LastStatus, j.Status, j.RemoveReason = condor.Held, condor.Removed, "Staging of job files failed"
	})
	w.schedd.Leave(1, proc)
}

func TestWhatAnEmptyQueueSaidDoesNotCountOnceTheOldOneIsBack(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("one"))
	sent := w.schedd.Jobs()
	w.otherQueue(nil)
	w.later(10 * time.Second)
	back := false
	w.schedd.Fail(scheddtest.Daemon, scheddtest.Fault{First: func() { back = true; w.otherQueue(sent) }})
	for range 3 {
		w.later(2 * time.Minute)
	}
	require.True(t, back)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
	require.Equal(t, sent[0].Cluster, w.run("one").Cluster)
}

// A schedd that cannot be asked for the age of its queue may show another one's.
func TestWithoutTheAgeOfTheQueueNothingIsSentAgainOrLetGo(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("one"))
	sent := w.schedd.Jobs()
	w.clock = w.clock.Add(time.Second)
	w.schedd.Reset()
	w.schedd.Down(errUnreachable, scheddtest.Daemon)
	for range 3 {
		w.later(2 * time.Minute)
	}
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
	w.delete("one")
	w.later(2 * time.Minute)
	require.NotNil(t, w.job("one"), "its jobs may be there again")
	w.schedd.Down(nil, scheddtest.Daemon)
	w.schedd.Restore(sent)
	for range 3 {
		w.later(2 * time.Minute)
	}
	require.Empty(t, w.schedd.Jobs())
}

// A refusal says that nothing was sent, also to an htcd that has started since.
func TestWhatAQueueHasRefusedIsSentByTheNextHtcdThoughAnotherIsBack(t *testing.T) {
	w := newWorld(t)
	w.schedd.Down(errLimit, scheddtest.Submit)
	w.apply(htcjob("one"))
	require.True(t, w.run("one").Unsent)
	w.schedd.Down(nil)
	w.clock = w.clock.Add(time.Second)
	w.schedd.Swap()
	w.restart()
	for range 4 {
		w.later(5 * time.Second)
	}
	require.Len(t, w.schedd.Jobs(), 1)
	require.False(t, w.run("one").Unsent)
}

// The next leader's submission is another one than that which was refused.
func TestARefusalSaysNothingOfWhatANewLeaderSends(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("one"))
	former := w.run("one")
	former.TokenHash = []byte("another")
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.SetUnsent(former) }))
	require.False(t, w.run("one").Unsent)
}
