package kube

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// edit does what kubectl edit of a spec does, including the new generation.
func (w *world) edit(name string, change func(*v1alpha1.HTCJobSpec)) *v1alpha1.HTCJob {
	w.t.Helper()
	job := w.job(name).DeepCopy()
	job.Generation++
	change(&job.Spec)
	return w.apply(job)
}

func (w *world) suspend(name string, is bool) *v1alpha1.HTCJob {
	w.t.Helper()
	return w.edit(name, func(spec *v1alpha1.HTCJobSpec) { spec.Suspend = is })
}

// annotate does what kubectl annotate --overwrite does.
func (w *world) annotate(name, key, value string) *v1alpha1.HTCJob {
	w.t.Helper()
	job := w.job(name).DeepCopy()
	job.Annotations = map[string]string{key: value}
	return w.apply(job)
}

func (w *world) run(name string) ledger.Run {
	w.t.Helper()
	var run ledger.Run
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		run, err = tx.LatestRun("uid-" + name)
		return err
	}))
	return run
}

func counts(job *v1alpha1.HTCJob) []int32 {
	return []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed}
}

func suspended(job *v1alpha1.HTCJob) { job.Spec.Suspend = true }

func TestASuspendedHTCJobIsNotSentUntilItIsResumed(t *testing.T) {
	w := newWorld(t)
	job := w.apply(htcjob("one", suspended))
	require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
	require.Equal(t, metav1.ConditionTrue, condition(job, v1alpha1.ConditionSuspended).Status)
	require.Empty(t, job.Finalizers)
	require.Zero(t, w.schedd.Calls(scheddtest.Queue)+w.schedd.Calls(scheddtest.Submit), "HTCondor is not even asked")
	w.restart()
	w.later(time.Hour)
	require.Empty(t, w.schedd.Jobs())

	job = w.suspend("one", false)
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
	require.EqualValues(t, 1, job.Status.Attempt)
	require.Equal(t, metav1.ConditionFalse, condition(job, v1alpha1.ConditionSuspended).Status)
	require.Contains(t, w.told, "Normal Resumed: spec.suspend is false: the jobs are sent")
}

func TestSuspendTakesActiveJobsOutAndResumeSendsAllAnew(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("three", queueOf(3)))
	w.schedd.Run(1, -1)
	w.schedd.Complete(1, 1, 0)
	w.crosscheck()
	require.Equal(t, []int32{2, 1, 0}, counts(w.job("three")))

	job := w.suspend("three", true)
	require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
	require.Equal(t, []int32{0, 1, 0}, counts(job), "what had succeeded is said; what was removed has not failed")
	require.Empty(t, job.Status.Failures)
	require.Nil(t, job.Status.CompletionTime)
	require.Len(t, w.schedd.Jobs(), 1, "the one that completed stays until its output is fetched")
	said := condition(job, v1alpha1.ConditionSuspended)
	require.Equal(t, metav1.ConditionTrue, said.Status)
	require.Contains(t, said.Message, "2 jobs were removed from HTCondor")
	require.Equal(t, metav1.ConditionFalse, condition(job, v1alpha1.ConditionFailed).Status)
	require.Equal(t, job.Generation, job.Status.ObservedGeneration)
	require.Contains(t, w.told, "Normal Stopping: spec.suspend is true: 2 jobs are being removed from HTCondor")
	w.restart()
	w.crosscheck()
	w.later(time.Hour)
	require.Equal(t, job.Status, w.job("three").Status, "and so it stays")

	job = w.suspend("three", false)
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, []int32{3, 0, 0}, counts(job))
	require.Equal(t, "2.0", job.Status.JobID[0])
}

func TestWhatTheHistoryCouldNotKeepOfASuspendedHTCJobHasNotFailed(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("three", queueOf(3)))
	w.schedd.Run(1, -1)
	w.schedd.Complete(1, 1, 0)
	w.crosscheck()
	w.schedd.Lose(1, 2) // removed by condor_rm and rotated out of the history
	w.suspend("three", true)
	w.later(crosscheck.LostAfter)
	w.later(crosscheck.LostAfter)
	job := w.job("three")
	require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
	require.Equal(t, []int32{0, 1, 0}, counts(job))
	require.Empty(t, job.Status.Failures)
	require.Contains(t, condition(job, v1alpha1.ConditionSuspended).Message, "2 jobs were removed from HTCondor")
}

func TestSuspendOfAnEndedHTCJobChangesNothing(t *testing.T) {
	for name, ends := range map[string]func(w *world){
		"succeeded": func(w *world) { require.NoError(w.t, w.callback("one", 0, 0)) },
		"failed":    func(w *world) { require.NoError(w.t, w.callback("one", 0, 3)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			ends(w)
			before := w.job("one").Status
			job := w.suspend("one", true)
			require.Equal(t, before.Phase, job.Status.Phase)
			require.Equal(t, before.CompletionTime, job.Status.CompletionTime)
			require.Equal(t, "Ended", condition(job, v1alpha1.ConditionSuspended).Reason)
			require.EqualValues(t, 1, w.suspend("one", false).Status.Attempt)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestJobsThatEndedBeforeTheStopReachedThemHaveEnded(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Complete(1, 0, 0) // htcd does not know yet
	job := w.suspend("one", true)
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.Len(t, w.schedd.Jobs(), 1, "its output can still be fetched")
	require.EqualValues(t, 1, w.suspend("one", false).Status.Attempt)
}

func TestAStopIsCarriedThroughWhateverBreaksItOff(t *testing.T) {
	for name, fault := range map[string]struct {
		command string
		fault   scheddtest.Fault
	}{
		"killed before condor_rm":                  {scheddtest.Remove, scheddtest.Fault{Err: errBroken}},
		"killed after condor_rm":                   {scheddtest.Remove, scheddtest.Fault{Err: errBroken, After: true}},
		"the schedd does not answer condor_rm":     {scheddtest.Remove, scheddtest.Fault{Err: errUnreachable}},
		"the queue does not answer thereafter":     {scheddtest.Queue, scheddtest.Fault{Err: errUnreachable}},
		"the history does not answer in the end":   {scheddtest.History, scheddtest.Fault{Err: errUnreachable}},
		"and resumed before the schedd is back up": {scheddtest.Remove, scheddtest.Fault{Err: errUnreachable}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.apply(htcjob("one"))
				w.schedd.Run(1, 0)
				w.crosscheck()
				w.schedd.Fail(fault.command, fault.fault)
				job := w.suspend("one", true)
				require.NotEqual(t, v1alpha1.PhaseSuspended, job.Status.Phase)
				require.Equal(t, "Stopping", condition(job, v1alpha1.ConditionSuspended).Reason)
				if restart {
					w.restart()
				}
				if name == "and resumed before the schedd is back up" {
					w.suspend("one", false)
				}
				for range 3 {
					w.later(time.Minute)
				}
				if !w.job("one").Spec.Suspend {
					require.EqualValues(t, 2, w.job("one").Status.Attempt)
					require.Len(t, w.schedd.Jobs(), 1)
					return
				}
				require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
				require.Equal(t, []int32{0, 0, 0}, counts(w.job("one")))
				require.Empty(t, w.schedd.Jobs())
			})
		}
	}
}

func TestAnUnreachableScheddIsSaidWhileStopping(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Down(errUnreachable)
	job := w.suspend("one", true)
	require.Equal(t, []int32{1, 0, 0}, counts(job))
	require.Equal(t, metav1.ConditionFalse, condition(job, v1alpha1.ConditionBackendReachable).Status)
	w.schedd.Down(nil)
	w.later(time.Minute)
	require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
	require.Equal(t, metav1.ConditionTrue, condition(w.job("one"), v1alpha1.ConditionBackendReachable).Status)
}

func TestAnAttemptOfWhichNobodyKnowsWhetherItWasSentIsNotSentWhileSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		fault scheddtest.Fault
		phase v1alpha1.Phase
	}{
		"the schedd had nothing":    {scheddtest.Fault{Err: errBroken}, v1alpha1.PhaseSuspended},
		"the schedd had everything": {scheddtest.Fault{Err: errBroken, After: true}, v1alpha1.PhaseSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.schedd.Fail(scheddtest.Submit, c.fault)
			w.apply(htcjob("one"))
			w.suspend("one", true)
			w.restart()
			for range 4 {
				w.later(5 * time.Second)
			}
			job := w.job("one")
			require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
			require.Equal(t, []int32{0, 0, 0}, counts(job))
			require.Empty(t, w.schedd.Jobs())
			require.EqualValues(t, 2, w.suspend("one", false).Status.Attempt)
			require.Len(t, w.schedd.Jobs(), 1)
		})
	}
}

func TestASuspendedHTCJobWithALostLedgerStaysSuspended(t *testing.T) {
	for name, suspends := range map[string]func(w *world){
		"its jobs had been removed": func(w *world) { w.apply(htcjob("one", queueOf(2))); w.suspend("one", true) },
		"some had ended before": func(w *world) {
			w.apply(htcjob("one", queueOf(2)))
			w.schedd.Complete(1, 0, 0)
			w.crosscheck()
			w.suspend("one", true)
		},
		"nothing was ever sent": func(w *world) { w.apply(htcjob("one", queueOf(2), suspended)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			suspends(w)
			before := w.job("one").Status
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
			w.restart()
			w.settle()
			after := w.job("one").Status
			require.Equal(t, v1alpha1.PhaseSuspended, after.Phase)
			require.Equal(t, counts(&v1alpha1.HTCJob{Status: before}), counts(w.job("one")))
			w.suspend("one", false)
			for range 3 {
				w.later(5 * time.Second)
			}
			require.EqualValues(t, before.Attempt+1, w.job("one").Status.Attempt)
			require.Len(t, slices.DeleteFunc(w.schedd.Jobs(), func(j schedd.Job) bool { return j.Status == schedd.Completed }), 2)
		})
	}
}

func TestAnAttemptThatWouldFollowAnEndIsWithheld(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.ends("one", 0, 1))
	job := w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Suspend, spec.Script.Source = true, "true\n" })
	require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
	require.Equal(t, []int32{0, 0, 0}, counts(job))
	require.Equal(t, job.Generation, job.Status.ObservedGeneration)
	require.Equal(t, metav1.ConditionFalse, condition(job, v1alpha1.ConditionFailed).Status)
	job = w.suspend("one", false)
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
}

func TestADeletedHTCJobIsRemovedThoughItIsBeingStopped(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Fail(scheddtest.Remove, scheddtest.Fault{Err: errUnreachable})
	w.suspend("one", true)
	w.delete("one")
	w.later(time.Minute)
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
}

func TestAKilledJobsLastWordsAreNoFailureOfASuspendedHTCJob(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Fail(scheddtest.Queue, scheddtest.Fault{Err: errUnreachable})
	w.suspend("one", true)
	require.NoError(t, w.callback("one", 0, 143))
	require.Equal(t, []int32{1, 0, 0}, counts(w.job("one")))
	w.later(time.Minute)
	require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
	require.NotContains(t, w.told, "143")
}

func TestAJobThatHasJustSaidItsEndIsLeftToEndInHTCondor(t *testing.T) {
	for name, c := range map[string]struct {
		ends bool
		want []int32
	}{
		"it does":     {true, []int32{0, 1, 0}},
		"it does not": {false, []int32{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("two", queueOf(2)))
			w.schedd.Run(1, -1)
			require.NoError(t, w.callback("two", 0, 0))
			job := w.suspend("two", true)
			require.Equal(t, []int32{0, 1, 0}, counts(job))
			require.Len(t, w.schedd.Jobs(), 1)
			if c.ends {
				w.schedd.Complete(1, 0, 0)
			}
			w.later(crosscheck.Settling)
			w.later(time.Minute)
			require.Equal(t, v1alpha1.PhaseSuspended, w.job("two").Status.Phase)
			require.Equal(t, metav1.ConditionTrue, condition(w.job("two"), v1alpha1.ConditionSuspended).Status)
			require.Equal(t, c.want, counts(w.job("two")))
		})
	}
}

func deadlineOf(seconds int64) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.ActiveDeadlineSeconds = &seconds }
}

func TestTheActiveDeadlineRemovesWhatHasNotEnded(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t)
		w.apply(htcjob("three", queueOf(3), deadlineOf(60)))
		require.NoError(t, w.callback("three", 0, 0))
		require.NoError(t, w.callback("three", 1, 3))
		w.schedd.Complete(1, 0, 0)
		w.schedd.Complete(1, 1, 3)
		w.later(50 * time.Second)
		require.EqualValues(t, 1, w.job("three").Status.Active)
		if restart {
			w.restart()
		}
		w.later(10 * time.Second)
		job := w.job("three")
		require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
		require.Equal(t, []int32{0, 1, 2}, counts(job), "what had ended keeps its verdict")
		said := condition(job, v1alpha1.ConditionFailed)
		require.Equal(t, "DeadlineExceeded", said.Reason)
		require.Equal(t, "60 seconds have passed since the submission (spec.activeDeadlineSeconds): 1 of 3 jobs had not ended and was removed; 1 had failed before", said.Message)
		require.Equal(t, "ExitCode", job.Status.Failures[0].Reason)
		require.Equal(t, "DeadlineExceeded", job.Status.Failures[1].Reason)
		require.Len(t, w.schedd.Jobs(), 2, "completed ones stay until their output is fetched")
		require.NotNil(t, job.Status.CompletionTime)
		w.crosscheck()
		w.later(time.Hour)
		require.EqualValues(t, 1, w.job("three").Status.Attempt)
	}
}

func TestTheActiveDeadlineSurvivesAnUnreachableSchedd(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", deadlineOf(60)))
	w.schedd.Down(errUnreachable)
	w.later(time.Minute)
	require.EqualValues(t, 1, w.job("one").Status.Active)
	require.Equal(t, metav1.ConditionFalse, condition(w.job("one"), v1alpha1.ConditionBackendReachable).Status)
	w.restart()
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.ActiveDeadlineSeconds = nil }) // too late
	w.schedd.Down(nil)
	w.later(time.Minute)
	w.later(time.Minute)
	require.Equal(t, "DeadlineExceeded", condition(w.job("one"), v1alpha1.ConditionFailed).Reason)
	require.Empty(t, w.schedd.Jobs())
}

func TestADeadlineIsMeasuredFromTheSubmissionAndMayBeMoved(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", deadlineOf(60)))
	w.later(30 * time.Second)
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { *spec.ActiveDeadlineSeconds = 600 })
	w.later(60 * time.Second)
	require.EqualValues(t, 1, w.job("one").Status.Active)
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { *spec.ActiveDeadlineSeconds = 80 })
	w.settle()
	require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase, "its time had passed already")
	require.EqualValues(t, 1, w.job("one").Status.Attempt)
}

func ttlOf(seconds int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.TTLSecondsAfterFinished = &seconds }
}

func TestAnEndedHTCJobIsDeletedWhenItsTimeIsOver(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", ttlOf(60)))
	w.later(time.Hour)
	require.NotNil(t, w.job("one"), "it has not ended")
	require.NoError(t, w.callback("one", 0, 1))
	w.later(59 * time.Second)
	require.NotNil(t, w.job("one"))
	w.later(time.Second)
	require.Nil(t, w.job("one"))
	require.Contains(t, w.told, "Normal Expired: deleted 60 seconds after its end (spec.ttlSecondsAfterFinished)")
}

func TestARefusedHTCJobIsDeletedWhenItsTimeIsOver(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", ttlOf(60), func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "executable = /bin/sh" }))
	w.later(time.Minute)
	require.Nil(t, w.job("one"))
}

func TestAnHTCJobThatRunsAgainOrIsSuspendedDoesNotExpire(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("again", ttlOf(60)))
	require.NoError(t, w.ends("again", 0, 0))
	w.clock = w.clock.Add(time.Hour)
	w.edit("again", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "true\n" })
	require.EqualValues(t, 2, w.job("again").Status.Attempt)
	w.apply(htcjob("kept", ttlOf(60), suspended))
	w.later(time.Hour)
	require.NotNil(t, w.job("kept"))
}

func TestOutputThatIsStillToBeFetchedKeepsAnHTCJobForAnHour(t *testing.T) {
	for name, fetches := range map[string]bool{"it is fetched": true, "it cannot be had": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one", ttlOf(60)))
			run := w.run("one")
			run.OutputDir = t.TempDir()
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(run) }))
			w.schedd.Complete(1, 0, 0)
			w.crosscheck()
			w.later(2 * time.Minute)
			require.NotNil(t, w.job("one"))
			if !fetches {
				w.later(time.Hour)
				require.Nil(t, w.job("one"))
				return
			}
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
				p, err := tx.Proc("uid-one", 1, 0)
				if err != nil {
					return err
				}
				p.Fetched = ledger.IsFetched
				return tx.UpdateProc(p)
			}))
			w.later(time.Second)
			require.Nil(t, w.job("one"))
		})
	}
}

func TestWhatIsNotSentMayChangeAtAnyTimeWithoutAnotherAttempt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	edits := func(spec *v1alpha1.HTCJobSpec) {
		spec.TTLSecondsAfterFinished, spec.ActiveDeadlineSeconds, spec.LogsPod = new(int32(3600)), new(int64(7200)), true
	}
	job := w.edit("one", edits)
	require.Equal(t, job.Generation, job.Status.ObservedGeneration)
	require.NoError(t, w.callback("one", 0, 0))
	job = w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = false })
	require.EqualValues(t, 1, job.Status.Attempt)
	require.EqualValues(t, 3, job.Status.ObservedGeneration)
	complete := condition(job, v1alpha1.ConditionComplete)
	require.Equal(t, metav1.ConditionTrue, complete.Status)
	require.EqualValues(t, 3, complete.ObservedGeneration)
}

func TestTheAnnotationRunsAnEndedHTCJobOnceMoreForEachValue(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	job := w.annotate("one", v1alpha1.RerunAnnotation, "a")
	require.EqualValues(t, 1, job.Status.Attempt, "not while it is active")
	require.NoError(t, w.ends("one", 0, 0))
	job = w.job("one")
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, "a", job.Status.Rerun)
	require.NoError(t, w.ends("one", 0, 1))
	require.EqualValues(t, 2, w.job("one").Status.Attempt)
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	w.restart()
	w.later(time.Hour)
	require.EqualValues(t, 2, w.job("one").Status.Attempt, "a lost ledger reruns nothing")
	w.annotate("one", "another", "annotation")
	require.EqualValues(t, 2, w.job("one").Status.Attempt, "neither does its absence")
	w.annotate("one", v1alpha1.RerunAnnotation, "b")
	for range 3 {
		w.later(5 * time.Second)
	}
	require.EqualValues(t, 3, w.job("one").Status.Attempt)
}

func TestTheNextAttemptWaitsUntilHTCondorHasConfirmedTheEnd(t *testing.T) {
	for name, next := range map[string]func(w *world){
		"an edit": func(w *world) {
			w.edit("two", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "true\n" })
		},
		"a rerun": func(w *world) { w.annotate("two", v1alpha1.RerunAnnotation, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("two", queueOf(2)))
			w.schedd.Run(1, -1)
			require.NoError(t, w.ends("two", 0, 0))
			require.NoError(t, w.callback("two", 1, 0))
			require.Equal(t, v1alpha1.PhaseSucceeded, w.job("two").Status.Phase)
			next(w)
			w.later(time.Second)
			require.EqualValues(t, 1, w.job("two").Status.Attempt, "1.1 still runs, as far as HTCondor knows")
			w.restart()
			w.schedd.Hold(1, 1, schedd.HoldTooMuchOutput, "too much")
			w.later(time.Minute)
			job := w.job("two")
			require.EqualValues(t, 1, job.Status.Attempt)
			require.Equal(t, []int32{1, 1, 0}, counts(job))
			require.EqualValues(t, 1, job.Status.Held)
			require.Contains(t, w.told, "Warning SuccessCorrected: 1 job had told of a success, but HTCondor says otherwise: 1 active, 0 failed")

			w.schedd.Complete(1, 1, 0)
			w.later(time.Minute)
			w.crosscheck()
			w.later(time.Minute)
			require.EqualValues(t, 2, w.job("two").Status.Attempt)
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestAnEndThatHTCondorNeverShowsIsWhatItsCallbackSaid(t *testing.T) {
	lost := func(t *testing.T) *world {
		w := newWorld(t)
		w.apply(htcjob("two", queueOf(2)))
		w.schedd.Run(1, -1)
		require.NoError(t, w.ends("two", 0, 0))
		require.NoError(t, w.callback("two", 1, 3))
		w.schedd.Lose(1, 1)
		return w
	}
	t.Run("the next attempt", func(t *testing.T) {
		w := lost(t)
		w.edit("two", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "true\n" })
		w.later(crosscheck.LostAfter - time.Second)
		require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		require.Equal(t, []int32{0, 1, 1}, counts(w.job("two")))
		w.later(crosscheck.LostAfter)
		require.EqualValues(t, 2, w.job("two").Status.Attempt)
	})
	t.Run("a stop", func(t *testing.T) {
		w := newWorld(t)
		w.apply(htcjob("two", queueOf(2)))
		w.schedd.Run(1, -1)
		require.NoError(t, w.callback("two", 1, 0))
		w.schedd.Lose(1, 1)
		w.later(crosscheck.Settling)
		w.suspend("two", true)
		w.later(crosscheck.LostAfter)
		w.later(crosscheck.LostAfter)
		job := w.job("two")
		require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
		require.Equal(t, []int32{0, 1, 0}, counts(job))
	})
	t.Run("two answers in a row", func(t *testing.T) {
		w := lost(t)
		job := w.schedd.Jobs()[0]
		job.Proc, job.Status = 1, schedd.Running
		w.crosscheck()
		w.schedd.Put(job) // it had been missing for a moment
		w.clock = w.clock.Add(crosscheck.LostAfter)
		w.crosscheck()
		w.schedd.Lose(1, 1)
		w.clock = w.clock.Add(crosscheck.LostAfter)
		w.crosscheck()
		require.False(t, w.run("two").Confirmed)
		w.clock = w.clock.Add(crosscheck.LostAfter)
		w.crosscheck()
		require.True(t, w.run("two").Confirmed)
		require.Equal(t, []int32{0, 1, 1}, counts(w.job("two")))
		require.EqualValues(t, 3, *w.job("two").Status.Failures[0].ExitCode)
	})
}

func TestTheEndIsAskedForWhileTheScheddIsAway(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.ends("one", 0, 0))
	w.schedd.Down(errUnreachable)
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "true\n" })
	w.later(time.Hour)
	require.EqualValues(t, 1, w.job("one").Status.Attempt)
	w.schedd.Down(nil)
	w.later(time.Hour)
	require.EqualValues(t, 2, w.job("one").Status.Attempt)
}

func TestARunOfAnOlderHtcdIsToldByItsGenerationWhileItHasIt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.ends("one", 0, 0))
	run := w.run("one")
	run.SpecHash = ""
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(run) }))
	w.restart()
	w.later(time.Hour)
	require.EqualValues(t, 1, w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = true }).Status.Attempt)

	run = w.run("one")
	run.SpecHash, run.Generation = "", 1
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(run) }))
	w.later(time.Hour)
	require.EqualValues(t, 2, w.job("one").Status.Attempt, "the HTCJob has another generation, and nobody knows what changed")
}

func TestAChangeThatWaitsIsNotAnsweredWithTheOldEnd(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.callback("one", 0, 0))
	w.denied = &backend.CredentialError{Reason: "BadPassword", Message: "the KDC refuses the password"}
	job := w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "true\n" })
	require.EqualValues(t, 1, job.Status.ObservedGeneration)
	require.EqualValues(t, 1, condition(job, v1alpha1.ConditionComplete).ObservedGeneration)
}

func TestKstatusCanTellHowItStands(t *testing.T) {
	w := newWorld(t)
	stands := func(name string) string {
		job := w.job(name)
		switch {
		case job.Status.ObservedGeneration != job.Generation, condition(job, v1alpha1.ConditionReconciling).Status == metav1.ConditionTrue:
			return "InProgress"
		case condition(job, v1alpha1.ConditionStalled).Status == metav1.ConditionTrue:
			return "Failed"
		}
		return "Current"
	}
	w.apply(htcjob("good"))
	require.Equal(t, "InProgress", stands("good"))
	require.NoError(t, w.ends("good", 0, 0))
	require.Equal(t, "Current", stands("good"))
	w.edit("good", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "false\n" })
	require.Equal(t, "InProgress", stands("good"))
	require.NoError(t, w.ends("good", 0, 1))
	require.Equal(t, "Failed", stands("good"))
	w.apply(htcjob("kept", suspended))
	require.Equal(t, "Current", stands("kept"))
}

func TestAJobRemovedInHTCondorIsMirroredInItsWords(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Edit(1, 0, func(j *schedd.Job) {
		j.LastStatus, j.Status, j.RemoveReason = j.Status, schedd.Removed, "via condor_rm (by user alice)"
	})
	w.schedd.Leave(1, 0)
	w.crosscheck()
	job := w.job("one")
	require.Equal(t, v1alpha1.PhaseRemoved, job.Status.Phase)
	said := condition(job, v1alpha1.ConditionFailed)
	require.Equal(t, "Removed", said.Reason)
	require.Equal(t, "1 of 1 job removed from HTCondor; 1.0: via condor_rm (by user alice)", said.Message)
	require.Contains(t, w.told, "Warning Removed: "+said.Message)
}

func TestEveryTransitionIsToldOnceHoweverManyJobsItConcerns(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("many", queueOf(500)))
	w.schedd.Run(1, -1)
	w.crosscheck()
	w.schedd.Hold(1, -1, 1, "via condor_hold (by user alice)")
	w.later(betweenWrites)
	w.crosscheck()
	w.schedd.Run(1, -1)
	w.later(betweenWrites)
	w.crosscheck()
	for proc := range 500 {
		w.schedd.Complete(1, proc, proc%2)
		if proc%100 == 0 {
			w.later(betweenWrites)
			w.crosscheck()
		}
	}
	w.later(betweenWrites)
	w.crosscheck()
	require.Equal(t, []string{
		"Normal Submitted: cluster 1 with 500 jobs is at schedd schedd.test",
		"Normal Running: 500 jobs are running",
		"Warning Held: 500 jobs are held; 1.0: via condor_hold (by user alice) (hold code 1/0)",
		"Normal Released: no job is held any more: 0 idle, 500 running",
		"Normal Running: 500 jobs are running",
		"Warning JobFailed: 50 of 500 jobs failed so far; 1.1: exit code 1",
		"Warning Failed: 250 of 500 jobs failed; 1.1: exit code 1",
	}, w.told)
}

func TestTheLastLinesOfAFailureAreShown(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Complete(1, 0, 1)
	w.crosscheck()
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		p, err := tx.Proc("uid-one", 1, 0)
		if err != nil {
			return err
		}
		p.Stderr = "no such file\n"
		return tx.UpdateProc(p)
	}))
	w.later(time.Second)
	require.Equal(t, "no such file\n", w.job("one").Status.Failures[0].Stderr)
}
