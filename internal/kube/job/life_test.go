package job

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
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
	w.later(2 * recovery.AbsentTwice)
	require.Nil(t, w.job("one"))
	require.Contains(t, w.events, "Normal Expired: deleted 60 seconds after its end (spec.ttlSecondsAfterFinished)")
}

func TestADeletionIsToldOfOnceHoweverOftenItIsTried(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, func(o *Options) { o.Log = zerolog.New(&log).Level(zerolog.InfoLevel) })
	w.apply(htcjob("one", ttlOf(60)))
	require.NoError(t, w.ends("one", 0, 0))
	w.undeletable = errBroken
	for range 10 {
		w.later(time.Minute)
	}
	require.NotNil(t, w.job("one"))
	require.NotContains(t, strings.Join(w.events, " "), "Expired")
	require.Equal(t, 1, strings.Count(log.String(), "not written, trying again"), log.String())
	w.undeletable = nil
	w.later(time.Minute)
	w.later(2 * recovery.AbsentTwice)
	require.Nil(t, w.job("one"))
	require.Equal(t, 1, strings.Count(strings.Join(w.events, " "), "Expired"))
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
	for name, fetches := range map[string]bool{"it is fetched": true, "it cannot be fetched": false} {
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
				w.later(2 * recovery.AbsentTwice)
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
		spec.TTLSecondsAfterFinished, spec.ActiveDeadlineSeconds, spec.LogsPod = new(
			int32(3600),
		), new(
			int64(7200),
		), true
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
			w.schedd.Hold(1, 1, condor.HoldTooMuchOutput, "too much")
			w.later(time.Minute)
			job := w.job("two")
			require.EqualValues(t, 1, job.Status.Attempt)
			require.Equal(t, []int32{1, 1, 0}, counts(job))
			require.EqualValues(t, 1, job.Status.Held)
			require.Contains(
				t,
				w.events,
				"Warning SuccessCorrected: 1 job reported success, but HTCondor says otherwise: 1 active, 0 failed",
			)

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
		job.Proc, job.Status = 1, condor.Running
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
	w.later(2 * recovery.AbsentTwice) // nobody else has sent one since
	require.EqualValues(
		t,
		2,
		w.job("one").Status.Attempt,
		"the HTCJob has another generation, and nobody knows what changed",
	)
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
		case job.Status.ObservedGeneration != job.Generation,
			condition(job, v1alpha1.ConditionReconciling).Status == metav1.ConditionTrue:
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
	w.schedd.Edit(1, 0, func(j *condor.Job) {
		j.LastStatus, j.Status, j.RemoveReason = j.Status, condor.Removed, "via condor_rm (by user alice)"
	})
	w.schedd.Leave(1, 0)
	w.crosscheck()
	job := w.job("one")
	require.Equal(t, v1alpha1.PhaseRemoved, job.Status.Phase)
	said := condition(job, v1alpha1.ConditionFailed)
	require.Equal(t, "Removed", said.Reason)
	require.Equal(t, "1 of 1 job removed from HTCondor; 1.0: via condor_rm (by user alice)", said.Message)
	require.Contains(t, w.events, "Warning Removed: "+said.Message)
}

func TestEveryTransitionIsToldOnceHoweverManyJobsItConcerns(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("many", queueOf(500)))
	w.schedd.Run(1, -1)
	w.crosscheck()
	w.schedd.Hold(1, -1, 1, "via condor_hold (by user alice)")
	w.later(reconciler.BetweenWrites)
	w.crosscheck()
	w.schedd.Run(1, -1)
	w.later(reconciler.BetweenWrites)
	w.crosscheck()
	for proc := range 500 {
		w.schedd.Complete(1, proc, proc%2)
		if proc%100 == 0 {
			w.later(reconciler.BetweenWrites)
			w.crosscheck()
		}
	}
	w.later(reconciler.BetweenWrites)
	w.crosscheck()
	require.Equal(t, []string{
		"Warning Held: 500 jobs are held; 1.0: via condor_hold (by user alice) (hold code 1/0)",
		"Normal Released: no job is held any more: 0 idle, 500 running",
		"Warning JobFailed: 50 of 500 jobs failed so far; 1.1: exit code 1",
		"Warning Failed: 250 of 500 jobs failed; 1.1: exit code 1",
	}, w.events)
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
