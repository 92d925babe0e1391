package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// early returns a world in which the apiserver sets the finalizer at the creation; there is what was created before
// htcd began to lead.
func earlyWorld(t *testing.T, there ...*v1alpha1.HTCJob) *world {
	w := newWorld(t)
	w.version, w.FinalizerAtCreation = "10", true
	for _, job := range there {
		require.NoError(t, w.store.Add(job))
	}
	require.NoError(t, w.lookEarly(t.Context()))
	return w
}

func born(version string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Finalizers, job.ResourceVersion = []string{v1alpha1.Finalizer}, version
	}
}

func TestTheApiserverIsNotAskedForAFinalizerThatIsThere(t *testing.T) {
	w := earlyWorld(t)
	require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("one", born("11"))).Status.Phase)
	require.Zero(t, w.finalizers)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

	w.apply(htcjob("without")) // the policy was away
	require.Equal(t, 1, w.finalizers)
	w.apply(htcjob("old", born("9"))) // the cache may be older than the deletion
	require.Equal(t, 2, w.finalizers)
	require.Equal(t, 3, w.schedd.Calls(scheddtest.Submit))
}

func TestAFinalizerAtCreationDoesNotHoldBackADeletionOfWhatWasNeverSent(t *testing.T) {
	w := earlyWorld(t)
	w.apply(htcjob("one", born("11"), func(job *v1alpha1.HTCJob) { job.Spec.Suspend = true }))
	require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
	w.schedd.Down(&condor.Error{Kind: condor.Unreachable})
	w.delete("one")
	require.Nil(t, w.job("one"))
}

func TestNothingIsSentWhileTheScheddShowsAQueueYoungerThanTheHTCJob(t *testing.T) {
	lost := htcjob("lost", born("5"))
	w := earlyWorld(t, lost)
	lost.CreationTimestamp = metav1.NewTime(w.clock)
	require.NoError(t, w.store.Update(lost))
	w.clock = w.clock.Add(time.Second)
	w.schedd.Reset()
	w.Changed.Add("default/lost")
	w.settle()
	w.later(5 * time.Minute)
	require.Zero(t, w.schedd.Calls(scheddtest.Submit), "its jobs may be in the other queue")
	w.later(time.Hour)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestWhatWasThereBeforeIsLookedForBeforeItIsSent(t *testing.T) {
	lost := htcjob("lost", born("5"))
	w := earlyWorld(t, lost, htcjob("waited", born("6")))
	w.schedd.Put(
		condor.Job{
			Cluster:       7,
			Tag:           condor.Tag{UID: string(lost.UID), Attempt: 1},
			Owner:         scheddtest.Robot,
			Status:        condor.Idle,
			StageInFinish: 1,
		},
	)
	w.Changed.Add("default/lost")
	w.Changed.Add("default/waited")
	w.settle()
	require.Zero(t, w.schedd.Calls(scheddtest.Submit))
	w.later(recovery.AbsentTwice + time.Second)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
	require.Equal(t, []string{"7.0"}, w.job("lost").Status.JobID)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("waited").Status.Phase)
}
