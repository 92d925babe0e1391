package job

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// cancelProcs sets the annotation.
func (w *world) cancelProcs(name, value string) *v1alpha1.HTCJob {
	job := w.job(name).DeepCopy()
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	job.Annotations[v1alpha1.CancelProcsAnnotation] = value
	w.write(job)
	w.settle()
	w.later(time.Minute)
	return w.job(name)
}

func TestOnlyTheNamedJobsAreCancelled(t *testing.T) {
	w := newWorldWithOutput(t)
	w.apply(htcjob("one", queueOf(6)))
	w.schedd.Run(1, -1)
	w.schedd.Complete(1, 3, 0)
	w.crosscheck()
	job := w.cancelProcs("one", "1/1, 3-4")
	require.Equal(t, []int32{3, 1, 2}, counts(job), "what has ended keeps its end")
	require.Len(t, job.Status.Failures, 2)
	require.Equal(t, "Removed", job.Status.Failures[0].Reason)
	require.Contains(t, job.Status.Failures[0].Message, "cancelled by the annotation htc.cern.ch/cancel-procs")
	require.Contains(t, w.events, "Normal Cancelled: 2 jobs removed from HTCondor: 1,4")
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Remove))
	w.crosscheck()
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Remove), "once")

	job = w.again("one", "a", "failed")
	require.EqualValues(t, 1, job.Status.Attempt, "not before its end")
	for _, proc := range []int{0, 2, 5} {
		w.schedd.Complete(1, proc, 0)
	}
	w.crosscheck()
	job = w.job("one")
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, "1,4", job.Status.Partial.Procs)
	require.Equal(t, []int32{2, 4, 0}, counts(job))
	job = w.cancelProcs("one", "2/4")
	require.Equal(t, []int32{1, 4, 1}, counts(job), "by its number")
	require.EqualValues(t, 4, *job.Status.Failures[0].Proc)
	job = w.cancelProcs("one", "1/0-5")
	require.Equal(t, []int32{1, 4, 1}, counts(job), "an earlier attempt")
	require.Nil(t, meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCancelRefused))
}

func TestACancellationGoesOnWhateverInterruptsIt(t *testing.T) {
	for name, fault := range map[string]scheddtest.Fault{
		"killed before condor_rm":    {Err: errBroken},
		"killed after condor_rm":     {Err: errBroken, After: true},
		"the schedd does not answer": {Err: errUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one", queueOf(3)))
			w.schedd.Fail(scheddtest.Remove, fault)
			w.cancelProcs("one", "1/1")
			w.restart()
			w.later(time.Minute)
			require.Equal(t, []int32{2, 0, 1}, counts(w.job("one")))
			require.Equal(t, ledger.StatusFailed, w.proc("one", 1, 1).Status)
		})
	}
}

func TestACancellationIsSaidThoughAnotherCrossCheckRecordsIt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", queueOf(3)))
	w.schedd.Edit(1, 1, func(j *condor.Job) {
		// and does not leave the queue at once
		j.LastStatus, j.Status, j.RemoveReason = j.Status, condor.Removed, crosscheck.ReasonCancelled
	})
	w.cancelProcs("one", "1/1")
	require.Equal(t, ledger.StatusOpen, w.proc("one", 1, 1).Status)
	w.schedd.Leave(1, 1)
	w.crosscheck()
	require.Equal(t, []int32{2, 0, 1}, counts(w.job("one")))
	require.Contains(t, w.events, "Normal Cancelled: 1 job removed from HTCondor: 1")
}

func TestWhatCannotBeCancelledIsSaid(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", queueOf(3)))
	for value, words := range map[string]string{
		"3":               "expected the attempt and its jobs, such as 1/3,7-9",
		"x/1":             "expected the attempt",
		"-1/1":            "expected the attempt",
		"1/3":             "there is no job 3: they are numbered 0 to 2",
		"1/0-99999999999": "expected numbers and ranges",
		"1/":              "expected numbers and ranges",
		"1/all":           "expected numbers and ranges",
		"2/1":             "attempt 2 has not begun: the newest is 1",
	} {
		job := w.cancelProcs("one", value)
		require.Contains(t, condition(job, v1alpha1.ConditionCancelRefused).Message, words, value)
		require.Equal(t, []int32{3, 0, 0}, counts(job))
	}
	require.Zero(t, w.schedd.Calls(scheddtest.Remove))
	job := w.cancelProcs("one", "1/0-2")
	require.Nil(t, meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCancelRefused))
	require.Equal(t, v1alpha1.PhaseRemoved, job.Status.Phase)
}

func TestManyScatteredJobsAreCancelledInRounds(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", queueOf(420)))
	value := "1/0"
	for n := 2; n < 420; n += 2 {
		value += "," + strconv.Itoa(n)
	}
	w.cancelProcs("one", value)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Remove))
	require.Equal(t, []int32{210, 0, 210}, counts(w.job("one")))
	require.Contains(
		t,
		w.events,
		"Normal Cancelled: 10 jobs removed from HTCondor: 400,402,404,406,408,410,412,414,416,418",
	)
}
