package job

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

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
	require.Contains(t, w.events, "Normal Resumed: spec.suspend is false: the jobs are sent")
}

func TestSuspendTakesActiveJobsOutAndResumeSendsThemAgain(t *testing.T) {
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
	require.Contains(t, w.events, "Normal Stopping: spec.suspend is true: 2 jobs are being removed from HTCondor")
	w.restart()
	w.crosscheck()
	w.later(time.Hour)
	require.Equal(t, job.Status, w.job("three").Status, "and so it stays")

	job = w.suspend("three", false)
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, []int32{2, 1, 0}, counts(job), "what had succeeded counts, and does not run again")
	require.Equal(t, []string{"2.0", "2.1"}, job.Status.JobID)
	require.Equal(t, &v1alpha1.Partial{Procs: "0,2", Succeeded: 1}, job.Status.Partial)
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
			require.Len(
				t,
				slices.DeleteFunc(w.schedd.Jobs(), func(j condor.Job) bool { return j.Status == condor.Completed }),
				2,
			)
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
	require.NotContains(t, w.events, "143")
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
		require.Equal(
			t,
			"60 seconds have passed since the submission (spec.activeDeadlineSeconds): 1 of 3 jobs had not ended and was removed; 1 had failed before",
			said.Message,
		)
		require.Equal(t, "ExitCode", job.Status.Failures[0].Reason)
		require.Equal(t, "DeadlineExceeded", job.Status.Failures[1].Reason)
		require.Len(t, w.schedd.Jobs(), 2, "completed ones stay until their output is fetched")
		require.NotNil(t, job.Status.CompletionTime)
		require.Equal(t, crosscheck.StopDeadline, w.run("three").Reason, "the history tells it")
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
