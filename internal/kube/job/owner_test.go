package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// forge adds a running job of eve's with the tag of an HTCJob's attempt.
func (w *world) forge(cluster int, name string, attempt int) {
	w.schedd.Put(condor.Job{
		Cluster:       cluster,
		Tag:           condor.Tag{UID: "uid-" + name, Attempt: attempt, Namespace: "default", Name: name},
		Owner:         "eve",
		Status:        condor.Running,
		QDate:         w.clock.Unix(),
		StageInFinish: w.clock.Unix(),
	})
}

func otherAccount(job *v1alpha1.HTCJob) string {
	said := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCredentials)
	if said == nil || said.Status != metav1.ConditionFalse || said.Reason != "OtherAccount" {
		return ""
	}
	return said.Message
}

func TestAForgedTagIsNotAdopted(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.forge(7, "theirs", 1)
	w.apply(htcjob("theirs"))
	w.later(time.Minute)
	w.later(0)
	job := w.job("theirs")
	require.Empty(t, job.Status.JobID)
	require.Contains(t, otherAccount(job), "job 7.0 of the account eve carries this HTCJob's tag")
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit), "nothing is sent beside it: htcd may have been eve")

	w.schedd.Leave(7, -1)
	w.later(time.Minute)
	w.later(0)
	require.NotEmpty(t, otherAccount(w.job("theirs")), "nor is its end anybody's")
}

func TestTheOwnClusterIsAdoptedBesideAForgedOne(t *testing.T) {
	for name, account := range map[string]string{"of the namespace's account": "alice", "of the common one, which the namespace had before": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.accounts["default"] = account
			w.forge(1, "theirs", 1)
			w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
			w.apply(htcjob("theirs"))
			w.accounts["default"] = "alice"
			w.later(time.Minute)
			require.Equal(t, []string{"2.0"}, w.job("theirs").Status.JobID)
			require.Empty(t, otherAccount(w.job("theirs")))
		})
	}
}

func TestAForgedLaterAttemptIsNotTakenForOneThatWasForgotten(t *testing.T) {
	w := newWorld(t)
	w.forge(7, "theirs", 900)
	job := htcjob("theirs")
	job.Finalizers = []string{v1alpha1.Finalizer} // as if the ledger had been lost right after the intent
	w.apply(job)
	w.later(time.Minute)
	w.later(time.Minute)
	require.EqualValues(t, 1, w.job("theirs").Status.Attempt)
	require.Equal(t, []string{"8.0"}, w.job("theirs").Status.JobID)
}

func TestAForgedTagDoesNotHoldUpADeletion(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("ours"))
	w.forge(7, "ours", 1)
	w.delete("ours")
	require.Nil(t, w.job("ours"))
	left := w.schedd.Jobs()
	require.Len(t, left, 1)
	require.Equal(t, "eve", left[0].Owner)
}

func TestWhileASubmissionIsOpenAnothersJobIsNotPassedOver(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.forge(7, "ours", 1)
	w.apply(htcjob("ours"))
	w.delete("ours")
	w.later(time.Minute)
	w.later(0)
	require.Contains(t, otherAccount(w.job("ours")), "1 job of the account eve")
}

func TestNobodyIsAdoptedWhileTheScheddDoesNotSayWhoHtcdIs(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.schedd.Down(errUnreachable, scheddtest.Account)
	w.apply(htcjob("ours"))
	w.later(time.Minute)
	require.Empty(t, w.job("ours").Status.JobID)
	w.schedd.Down(nil, scheddtest.Account)
	w.later(time.Minute)
	require.Equal(t, []string{"1.0"}, w.job("ours").Status.JobID)
}
