package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// again asks for another attempt of some jobs, or all.
func (w *world) again(name, value, procs string) *v1alpha1.HTCJob {
	job := w.job(name).DeepCopy()
	job.Annotations = map[string]string{v1alpha1.RerunAnnotation: value}
	if procs != "" {
		job.Annotations[v1alpha1.RerunProcsAnnotation] = procs
	}
	w.write(job)
	w.settle()
	return w.job(name)
}

// failedTwo has an HTCJob of four jobs of which 1 and 3 have failed.
func failedTwo(t *testing.T) *world {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(4)))
	w.completed(1, 0, 5, 0, 6)
	w.crosscheck()
	require.Equal(t, []int32{0, 2, 2}, counts(w.job("one")))
	return w
}

func TestOnlyTheFailedJobsRunAgainUnderTheirNumbers(t *testing.T) {
	w := failedTwo(t)
	job := w.again("one", "a", "failed")
	require.Equal(t, []int32{2, 2, 0}, counts(job))
	require.Equal(t, []string{"2.0", "2.1"}, job.Status.JobID)
	require.Equal(t, &v1alpha1.Partial{Procs: "1,3", Succeeded: 2}, job.Status.Partial)
	require.Contains(
		t,
		w.events,
		`Normal NextAttempt: attempt 2 begins: the annotation htc.cern.ch/rerun is "a": only the jobs 1,3 run again, 2 others have ended`,
	)
	require.Equal(t, "out of 1.0\n", w.kept("one", 2, 0, output.Stdout), "it is kept from the beginning")
	require.Equal(t, "absent", w.kept("one", 2, 1, output.Stdout))

	w.schedd.Run(2, -1)
	require.NoError(t, w.ends("one", 1, 7), "the callback names the cluster's proc")
	require.Equal(t, 7, *w.proc("one", 2, 3).ExitCode)
	require.Equal(t, ledger.StatusOpen, w.proc("one", 2, 1).Status)
	require.Error(t, w.callback("one", 2, 0), "the cluster has no such proc")
	w.schedd.Complete(2, 0, 0)
	w.crosscheck()
	job = w.job("one")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, []int32{0, 3, 1}, counts(job))
	require.Len(t, job.Status.Failures, 1)
	require.Equal(t, "2.1", job.Status.Failures[0].JobID)
	require.EqualValues(t, 3, *job.Status.Failures[0].Proc)
	require.Equal(t, "out of 2.0\n", w.kept("one", 2, 1, output.Stdout))
	require.Equal(t, "out of 2.1\n", w.kept("one", 2, 3, output.Stdout))
	require.Equal(t, "out of 1.2\n", w.kept("one", 2, 2, output.Stdout))
	require.Equal(t, "absent", w.kept("one", 1, 2, output.Stdout), "the earlier attempt's place is cleared")
	require.Empty(t, w.schedd.Jobs())

	job = w.again("one", "b", "0")
	require.Equal(t, []int32{1, 2, 1}, counts(job))
	w.completed(3, 0)
	w.crosscheck()
	job = w.job("one")
	require.Equal(t, []int32{0, 3, 1}, counts(job), "the failure of number 3 is kept")
	require.Equal(t, "2.1", job.Status.Failures[0].JobID)
	require.Equal(t, "out of 3.0\n", w.kept("one", 3, 0, output.Stdout))
	require.Equal(t, "out of 2.1\n", w.kept("one", 3, 3, output.Stdout))
	w.later(time.Hour)
	require.EqualValues(t, 3, w.job("one").Status.Attempt)
	require.Equal(t, 3, w.schedd.Calls(scheddtest.Submit))

	job = w.again("one", "c", "0-3")
	require.Nil(t, job.Status.Partial, "that is all of them")
	require.Equal(t, []int32{4, 0, 0}, counts(job))
}

func TestAChangedSpecRunsAllAgain(t *testing.T) {
	w := failedTwo(t)
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Suspend = true })
	w.again("one", "a", "failed")
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "exit 1\n" })
	job := w.suspend("one", false)
	require.Nil(t, job.Status.Partial)
	require.Equal(t, []int32{4, 0, 0}, counts(job))
}

func TestAPartOfAnHTCJobIsSentOnceWhateverInterruptsIt(t *testing.T) {
	for name, fault := range map[string]scheddtest.Fault{
		"killed before condor_submit":          {Err: errBroken},
		"killed after condor_submit":           {Err: errBroken, After: true},
		"the schedd does not answer":           {Err: errUnreachable},
		"the schedd dies after it has the job": {Err: errUnreachable, After: true},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := failedTwo(t)
				w.schedd.Fail(scheddtest.Submit, fault)
				job := w.again("one", "a", "failed")
				require.Equal(t, []int32{2, 2, 0}, counts(job), "the others count meanwhile")
				if lost {
					w.loseLedger()
				} else {
					w.restart()
				}
				for range 5 {
					w.later(time.Minute)
				}
				jobs := w.schedd.Jobs()
				require.Len(t, jobs, 2)
				for i, number := range []int{1, 3} {
					require.Equal(t, number, jobs[i].Number())
					require.Equal(t, 2, jobs[i].Tag.Attempt)
				}
				w.completed(jobs[0].Cluster, 0, 9)
				w.crosscheck()
				job = w.job("one")
				require.EqualValues(t, 2, job.Status.Attempt)
				require.Equal(t, []int32{0, 3, 1}, counts(job))
				require.EqualValues(t, 3, *job.Status.Failures[0].Proc)
				require.Equal(t, "out of 1.0\n", w.kept("one", 2, 0, output.Stdout))
			})
		}
	}
}

func TestAPartSurvivesTheLossOfTheLedger(t *testing.T) {
	w := failedTwo(t)
	w.again("one", "a", "1")
	w.loseLedger()
	w.crosscheck()
	job := w.job("one")
	require.Equal(t, []int32{1, 2, 1}, counts(job))
	require.Equal(t, "1.3", job.Status.Failures[0].JobID)
	w.completed(2, 0)
	w.crosscheck()
	job = w.job("one")
	require.Equal(t, []int32{0, 3, 1}, counts(job))
	w.loseLedger()
	require.Equal(t, []int32{0, 3, 1}, counts(w.job("one")))
	job = w.again("one", "b", "failed")
	require.Equal(t, &v1alpha1.Partial{Procs: "3", Succeeded: 3}, job.Status.Partial)
}

func TestOutputThatWasHereBeforeTheLedgerWasLostIsKeptWithTheNextAttempt(t *testing.T) {
	w := failedTwo(t)
	w.loseLedger()
	w.crosscheck()
	job := w.again("one", "a", "failed")
	require.Equal(t, &v1alpha1.Partial{Procs: "1,3", Succeeded: 2}, job.Status.Partial)
	w.later(time.Minute) // whether the schedd has such an attempt is asked twice
	w.completed(2, 0, 0)
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	require.Equal(t, "out of 1.0\n", w.kept("one", 2, 0, output.Stdout))
	require.Equal(t, "out of 2.0\n", w.kept("one", 2, 1, output.Stdout))
}

func TestWhatCannotRunAgainIsRefusedOnceAndNothingIsSent(t *testing.T) {
	for procs, words := range map[string]string{
		"4":        "there is no job 4: they are numbered 0 to 3; or write failed",
		"a":        "expected numbers and ranges such as 3,7-9",
		"Failed":   "expected numbers and ranges such as 3,7-9",
		"1-":       "expected numbers and ranges such as 3,7-9",
		"0-100000": "there is no job 100000",
	} {
		w := failedTwo(t)
		before := len(w.events)
		job := w.again("one", "a", procs)
		w.restart()
		w.later(time.Hour)
		require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit), procs)
		require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
		require.Equal(t, job.Generation, job.Status.ObservedGeneration)
		require.Contains(t, condition(job, v1alpha1.ConditionRerunRefused).Message, words)
		require.Len(t, w.events[before:], 1, procs)
		require.Contains(t, w.events[before], "Warning RerunRefused: ")
		job = w.again("one", "a", "1")
		require.Nil(t, meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionRerunRefused))
		require.EqualValues(t, 2, job.Status.Attempt, "mended")
	}
	w := newWorld(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1)
	w.crosscheck()
	job := w.again("one", "a", "failed")
	require.Equal(
		t,
		`nothing runs again, as asked for with the annotations htc.cern.ch/rerun "a" and htc.cern.ch/rerun-procs "failed": no job of it has failed`,
		condition(job, v1alpha1.ConditionRerunRefused).Message,
	)
}

func TestAnAttemptOfSomeJobsWaitsForTheOutputOfTheOthers(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1, 3)
	w.schedd.Down(errUnreachable, scheddtest.Transfer)
	w.crosscheck()
	job := w.again("one", "a", "failed")
	require.EqualValues(t, 1, job.Status.Attempt)
	require.Contains(
		t,
		condition(job, v1alpha1.ConditionSubmitted).Message,
		"2 outputs are still to be fetched or pushed of attempt 1",
	)
	w.schedd.Down(nil, scheddtest.Transfer)
	w.fetchAgain("one")
	w.later(time.Minute)
	require.EqualValues(t, 2, w.job("one").Status.Attempt)
	require.Equal(t, "out of 1.1\n", w.kept("one", 2, 1, output.Stdout))
}

func TestASuspendedPartGoesOnWhereItWas(t *testing.T) {
	w := failedTwo(t)
	w.again("one", "a", "failed")
	w.schedd.Run(2, -1)
	w.schedd.Complete(2, 1, 0)
	w.crosscheck()
	job := w.suspend("one", true)
	require.Equal(t, []int32{0, 3, 0}, counts(job))
	job = w.suspend("one", false)
	require.Equal(t, &v1alpha1.Partial{Procs: "1", Succeeded: 3}, job.Status.Partial)
	jobs := w.schedd.Jobs()
	require.Equal(t, []any{1, condor.Idle}, []any{jobs[len(jobs)-1].Number(), jobs[len(jobs)-1].Status})
	w.completed(3)
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	require.Equal(t, "out of 2.1\n", w.kept("one", 3, 3, output.Stdout))
}
