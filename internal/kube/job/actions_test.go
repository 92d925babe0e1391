package job

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestABurstOfOneNamespaceCostsAnotherOneTurnInEveryQueue(t *testing.T) {
	w := newWorld(t)
	for i := range 5000 {
		w.Changed.Add(fmt.Sprintf("burst/%d", i))
		w.Actions.Add(reconciler.Submitting, fmt.Sprintf("burst/%d", i))
	}
	w.Changed.Add("other/single")
	w.Actions.Add(reconciler.Submitting, "other/single")
	for range 2 {
		key, _ := w.Changed.Get()
		sent, _ := w.Actions.Queues[reconciler.Submitting].Get()
		if key == "other/single" {
			require.Equal(t, key, sent)
			return
		}
	}
	require.Fail(t, "the single one has not had its turn")
}

// slow is a schedd whose condor_rm does not return until it is released.
type slow struct {
	*scheddtest.Schedd
	began, letGo chan struct{}
}

func (s slow) Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error) {
	if _, is := c.(schedd.Remove); is {
		s.began <- struct{}{}
		<-s.letGo
	}
	return s.Schedd.Change(ctx, id, c)
}

func TestASubmissionDoesNotWaitForARemoval(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("gone"))
	s := slow{w.schedd, make(chan struct{}), make(chan struct{})}
	w.asks(s)

	job := w.job("gone").DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	w.write(job)
	key, _ := w.Changed.Get()
	w.SyncOne(t.Context(), key)
	w.Changed.Done(key)
	key, _ = w.Actions.Queues[reconciler.Deleting].Get()
	removed := make(chan struct{})
	go func() { w.ActOne(t.Context(), reconciler.Deleting, key); close(removed) }()
	<-s.began

	require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("new")).Status.Phase)
	require.False(t, w.Actions.Claim(key, w.clock), "nobody else acts for what is being removed")
	s.letGo <- struct{}{}
	<-removed
	w.Actions.Queues[reconciler.Deleting].Done(key)
	w.asks(w.schedd)
	w.later(2 * recovery.AbsentTwice)
	require.Nil(t, w.job("gone"))
}

func TestWhatWasDecidedAnewGoesToItsOwnWorkers(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("gone"))
	job := w.job("gone").DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	require.NoError(t, w.store.Update(job))

	w.ActOne(t.Context(), reconciler.Submitting, "default/gone")
	require.Zero(t, w.schedd.Calls(scheddtest.Remove))
	require.Equal(t, 1, w.Actions.Queues[reconciler.Deleting].Len())
	w.settle()
	w.later(2 * recovery.AbsentTwice)
	require.Nil(t, w.job("gone"))
}

func TestTheStatusOfASubmissionUnderWayIsWrittenWhenItIsThroughOrTakesLong(t *testing.T) {
	w := newWorld(t)
	var during []v1alpha1.Phase
	w.asks(busy{w.schedd, func() {
		for range 2 {
			require.NoError(t, w.Sync(t.Context(), "default/one"))
			during = append(during, w.job("one").Status.Phase)
			w.clock = w.clock.Add(time.Minute)
		}
	}})
	w.apply(htcjob("one"))
	require.Equal(t, []v1alpha1.Phase{v1alpha1.PhasePending, v1alpha1.PhaseSubmitting}, during)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("one").Status.Phase)
}

func TestTheFirstStatusOfWhatIsSubmittedAtOnceHasItsIds(t *testing.T) {
	w := newWorld(t)
	status := w.apply(htcjob("one")).Status
	require.Equal(t, []string{"1.0"}, status.JobID)
	require.Equal(t, 1, w.writes)
}

func TestWhatWaitsForItsTurnIsToldToWait(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.store.Add(htcjob("behind")))
	require.NoError(t, w.Sync(t.Context(), "default/behind"))
	require.Zero(t, w.writes)
	require.Equal(t, 1, w.Actions.Queues[reconciler.Submitting].Len())
	w.clock = w.clock.Add(time.Minute)
	require.NoError(t, w.Sync(t.Context(), "default/behind"))
	status := w.job("behind").Status
	require.Equal(t, v1alpha1.PhasePending, status.Phase)
	require.Equal(t, "Waiting", meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSubmitted).Reason)
}

// busy is a schedd that calls a function while condor_submit runs.
type busy struct {
	*scheddtest.Schedd
	meanwhile func()
}

func (s busy) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	s.meanwhile()
	return s.Schedd.Submit(ctx, id, dir)
}
