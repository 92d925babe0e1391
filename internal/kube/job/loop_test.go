package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

func condition(job *v1alpha1.HTCJob, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(job.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func TestAnHTCJobBecomesOneClusterAndItsCallbacksEndIt(t *testing.T) {
	w := newWorld(t)
	job := w.apply(htcjob("three", queueOf(3)))
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
	require.Equal(t, []string{"1.0", "1.1", "1.2"}, job.Status.JobID)
	require.EqualValues(t, 3, job.Status.Active)
	require.Contains(t, job.Finalizers, v1alpha1.Finalizer)
	require.Len(t, w.schedd.Jobs(), 3)

	w.schedd.Run(1, -1)
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseRunning, w.job("three").Status.Phase)

	require.NoError(t, w.callback("three", 0, 0))
	require.NoError(t, w.callback("three", 1, 3))
	require.NoError(t, w.callback("three", 1, 3), "a doubled callback is taken and changes nothing")
	job = w.job("three")
	require.EqualValues(t, []int32{1, 1, 1}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
	require.NoError(t, w.callback("three", 2, 0))
	job = w.job("three")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, "1.1", job.Status.Failures[0].JobID)
	require.EqualValues(t, 3, *job.Status.Failures[0].ExitCode)
	require.NotNil(t, job.Status.CompletionTime)
	require.Equal(t, metav1.ConditionTrue, condition(job, v1alpha1.ConditionFailed).Status)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestCountsOfALargeQueueAreWrittenOnceASecond(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("many", queueOf(100)))
	w.schedd.Run(1, -1)
	w.crosscheck()
	written := w.writes
	at := w.clock
	for proc := range 99 {
		require.NoError(t, w.callback("many", proc, 0))
		w.clock = at.Add(time.Duration(proc) * 10 * time.Millisecond)
	}
	require.LessOrEqual(t, w.writes-written, 3)
	require.NoError(t, w.callback("many", 99, 0))
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("many").Status.Phase, "the end is told at once")
}

func TestAStartIsShownBeforeHTCondorIsAskedAndChangesNoEnd(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	asked := w.schedd.Calls("condor_q")
	require.NoError(t, w.tells("one", 0, notify.Callback{Started: true}))
	require.Equal(t, v1alpha1.PhaseRunning, w.job("one").Status.Phase)
	require.Equal(t, asked, w.schedd.Calls("condor_q"))
	w.crosscheck()
	require.NotEqual(t, v1alpha1.PhaseRunning, w.job("one").Status.Phase, "HTCondor says that it waits")

	require.NoError(t, w.ends("one", 0, 3))
	ended := w.job("one").Status
	require.Equal(t, v1alpha1.PhaseFailed, ended.Phase)
	require.NoError(t, w.tells("one", 0, notify.Callback{Started: true}))
	require.Equal(t, ended, w.job("one").Status)
}

func TestACallbackWithAnothersTokenOrOfAnUnknownJobIsRefused(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	forged := notify.Callback{Namespace: "default", Name: "one", JobID: "1.0"}
	require.ErrorIs(t, w.Record(t.Context(), forged, notify.Hash("guessed")), notify.ErrForbidden)
	forged.JobID = "7.0"
	require.ErrorIs(t, w.Record(t.Context(), forged, notify.Hash("guessed")), notify.ErrUnknownJob)
	require.EqualValues(t, 1, w.job("one").Status.Active)
}

func TestARefusedDescriptionIsShownAndNotTriedUntilTheSpecChanges(t *testing.T) {
	w := newWorld(t)
	refusal := &condor.Error{Kind: condor.Refused, Command: "condor_submit", Stderr: "Parse error in expression"}
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: refusal})
	job := w.apply(htcjob("bad"))
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.EqualValues(t, 1, job.Status.Failed)
	require.Contains(t, condition(job, v1alpha1.ConditionSubmitted).Message, "Parse error in expression")
	require.Contains(t, w.events, "Warning Refused: condor_submit: Parse error in expression")
	w.later(time.Hour)
	w.restart()
	w.later(time.Hour)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

	mended := w.job("bad").DeepCopy()
	mended.Generation, mended.Spec.Script.Source = 2, "true\n"
	w.apply(mended)
	w.later(2 * recovery.AbsentTwice) // nobody else has sent one since
	job = w.job("bad")
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
	require.EqualValues(t, 2, job.Status.Attempt)
}

func TestAWrongPasswordIsShownAndAMendedSecretIsEnough(t *testing.T) {
	w := newWorld(t)
	w.denied = &backend.CredentialError{Reason: "BadPassword", Message: "the KDC refuses the password"}
	job := w.apply(htcjob("one"))
	require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
	require.Equal(t, "BadPassword", condition(job, v1alpha1.ConditionCredentials).Reason)
	require.Zero(t, w.schedd.Calls(scheddtest.Submit))
	w.denied = nil
	w.SecretChanged("default")
	w.settle()
	require.Equal(t, v1alpha1.PhaseIdle, w.job("one").Status.Phase)
	require.Equal(t, metav1.ConditionTrue, condition(w.job("one"), v1alpha1.ConditionCredentials).Status)
}

func TestTheCrossCheckRepairsWhatCallbacksDidNotSay(t *testing.T) {
	for name, c := range map[string]struct {
		happens   func(w *world)
		succeeded int32
		failed    int32
		reason    string
	}{
		"a lost callback of a success":        {func(w *world) { w.schedd.Complete(1, 0, 0) }, 1, 0, ""},
		"a lost callback of a failure":        {func(w *world) { w.schedd.Complete(1, 0, 9) }, 0, 1, "ExitCode"},
		"a job that left the queue":           {func(w *world) { w.schedd.Complete(1, 0, 0); w.schedd.Leave(1, 0) }, 1, 0, ""},
		"a callback that HTCondor denies":     {func(w *world) { _ = w.callback("one", 0, 0); w.schedd.Complete(1, 0, 9) }, 0, 1, "ExitCode"},
		"a callback that was too pessimistic": {func(w *world) { _ = w.callback("one", 0, 1); w.schedd.Complete(1, 0, 0) }, 1, 0, ""},
		"a job removed with condor_rm": {func(w *world) {
			_ = scheddtest.Err(w.schedd.Change(w.t.Context(), schedd.Identity{}, schedd.Remove{Where: condor.UIDConstraint("uid-one"), Reason: "via condor_rm"}))
		}, 0, 1, "Removed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			w.crosscheck()
			c.happens(w)
			w.crosscheck()
			job := w.job("one")
			require.Equal(t, c.succeeded, job.Status.Succeeded)
			require.Equal(t, c.failed, job.Status.Failed)
			if c.reason != "" {
				require.Equal(t, c.reason, job.Status.Failures[0].Reason)
			}
			calls := w.schedd.Calls(scheddtest.Queue)
			w.crosscheck()
			require.Equal(
				t,
				calls,
				w.schedd.Calls(scheddtest.Queue),
				"what HTCondor has confirmed is not asked about again",
			)
		})
	}
}

func TestAJobIsLostOnlyAfterTwoAnswersApartInTime(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Lose(1, 0)
	w.crosscheck()
	w.crosscheck()
	require.EqualValues(t, 1, w.job("one").Status.Active)
	w.schedd.Down(errUnreachable)
	w.clock = w.clock.Add(time.Hour)
	require.Error(t, w.Crosscheck(t.Context()))
	require.EqualValues(t, 1, w.job("one").Status.Active, "no answer is not an absence")
	w.schedd.Down(nil)
	w.crosscheck()
	require.Equal(t, "Lost", w.job("one").Status.Failures[0].Reason)
}

func TestAHeldJobIsShownWithItsReasonAndGoesOnWhenReleased(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Hold(1, 0, 1, "via condor_hold (by user alice)")
	w.crosscheck()
	job := w.job("one")
	require.Equal(t, v1alpha1.PhaseHeld, job.Status.Phase)
	require.EqualValues(t, 1, job.Status.Held)
	require.Contains(t, condition(job, v1alpha1.ConditionHeld).Message, "via condor_hold")
	w.schedd.Run(1, 0)
	w.crosscheck()
	require.Equal(t, metav1.ConditionFalse, condition(w.job("one"), v1alpha1.ConditionHeld).Status)
}

func TestWhatAJobOnHoldHasWrittenIsShownAndStaysWhenItIsRemoved(t *testing.T) {
	for name, ends := range map[string]notify.Callback{
		"its script ended, and HTCondor holds the job then": {Retcode: 3, Stderr: "trying\nno such file\n"},
		"HTCondor is about to hold it":                      {Held: true, Stderr: "trying\nno such file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			w.schedd.Run(1, 0)
			w.crosscheck()
			require.NoError(t, w.tells("one", 0, ends))
			require.Equal(t, ends.Held, w.job("one").Status.Failed == 0)
			w.schedd.Hold(1, 0, 3, "the job attribute OnExitHold")
			w.clock = w.clock.Add(time.Minute)
			w.crosscheck()
			require.Equal(t, v1alpha1.PhaseHeld, w.job("one").Status.Phase)
			require.Contains(
				t,
				condition(w.job("one"), v1alpha1.ConditionHeld).Message,
				"standard error:\ntrying\nno such file",
			)
			w.schedd.Edit(1, 0, func(j *condor.Job) { j.Status, j.RemoveReason = condor.Removed, "via condor_rm" })
			w.schedd.Leave(1, 0)
			w.crosscheck()
			require.Equal(t, "trying\nno such file", w.job("one").Status.Failures[0].Stderr)
		})
	}
}

func TestWhatAJobWroteBeforeAHoldGoesWhenItRunsAgain(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.tells("one", 0, notify.Callback{Held: true, Stderr: "why"}))
	w.schedd.Hold(1, 0, 12, "no file")
	w.crosscheck()
	w.schedd.Run(1, 0)
	w.crosscheck()
	w.schedd.Hold(1, 0, 1, "via condor_hold")
	w.crosscheck()
	require.NotContains(t, condition(w.job("one"), v1alpha1.ConditionHeld).Message, "why")
}

func TestWithRetriesLeftACallbackOnlyAsksForACheck(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "max_retries = 2" }))
	w.schedd.Run(1, 0)
	require.NoError(t, w.callback("one", 0, 5))
	require.EqualValues(t, 1, w.job("one").Status.Active)
	w.schedd.Complete(1, 0, 0)
	w.checkSome(t.Context(), []string{"uid-one"})
	w.settle()
	require.EqualValues(t, 1, w.job("one").Status.Succeeded)
}

func TestAChangedSpecRunsAgainOnceEverythingHasEnded(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.ends("one", 0, 1))
	labelled := w.job("one").DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	require.EqualValues(t, 1, w.apply(labelled).Status.Attempt, "metadata never reruns")
	changed := w.job("one").DeepCopy()
	changed.Generation, changed.Spec.Script.Source = 2, "true\n"
	job := w.apply(changed)
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, []string{"2.0"}, job.Status.JobID)
	require.Empty(t, job.Status.Failures)
	require.EqualValues(t, 1, job.Status.Active)
}
