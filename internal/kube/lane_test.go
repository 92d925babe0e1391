package kube

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestNamespacesTakeTurns(t *testing.T) {
	for name, c := range map[string]struct{ pushed, popped []string }{
		"one namespace: first come, first served":     {[]string{"a/1", "a/2", "a/3"}, []string{"a/1", "a/2", "a/3"}},
		"a single one waits for one turn":             {[]string{"a/1", "a/2", "a/3", "b/1"}, []string{"a/1", "b/1", "a/2", "a/3"}},
		"three namespaces go round":                   {[]string{"a/1", "a/2", "b/1", "b/2", "c/1"}, []string{"a/1", "b/1", "c/1", "a/2", "b/2"}},
		"a key without a namespace is one of its own": {[]string{"a/1", "a/2", "uid"}, []string{"a/1", "uid", "a/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &turns{waiting: map[string][]string{}}
			for _, key := range c.pushed {
				q.Push(key)
			}
			var popped []string
			for q.Len() > 0 {
				popped = append(popped, q.Pop())
			}
			require.Equal(t, c.popped, popped)
			require.Empty(t, q.waiting, "nothing is kept of who was served")
		})
	}
}

func TestWhoComesAgainTakesTheLastTurn(t *testing.T) {
	q := &turns{waiting: map[string][]string{}}
	q.Push("a/1")
	q.Push("b/1")
	require.Equal(t, "a/1", q.Pop())
	q.Push("a/2")
	require.Equal(t, "b/1", q.Pop())
	require.Equal(t, "a/2", q.Pop())
}

func TestABurstOfOneNamespaceCostsAnotherOneTurnInEveryQueue(t *testing.T) {
	w := newWorld(t)
	for i := range 5000 {
		w.queue.Add(fmt.Sprintf("burst/%d", i))
		w.lane.add(submitting, fmt.Sprintf("burst/%d", i))
	}
	w.queue.Add("other/single")
	w.lane.add(submitting, "other/single")
	for range 2 {
		key, _ := w.queue.Get()
		sent, _ := w.lane.queues[submitting].Get()
		if key == "other/single" {
			require.Equal(t, key, sent)
			return
		}
	}
	require.Fail(t, "the single one has not had its turn")
}

// slow is a schedd whose condor_rm does not come back until it is let go.
type slow struct {
	*scheddtest.Schedd
	began, letGo chan struct{}
}

func (s slow) Remove(ctx context.Context, id schedd.Identity, constraint, reason string) error {
	s.began <- struct{}{}
	<-s.letGo
	return s.Schedd.Remove(ctx, id, constraint, reason)
}

func TestASubmissionDoesNotWaitForARemoval(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("gone"))
	s := slow{w.schedd, make(chan struct{}), make(chan struct{})}
	w.asks(s)

	job := w.job("gone").DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	w.write(job)
	key, _ := w.queue.Get()
	w.syncOne(t.Context(), key)
	w.queue.Done(key)
	key, _ = w.lane.queues[removing].Get()
	removed := make(chan struct{})
	go func() { w.actOne(t.Context(), removing, key); close(removed) }()
	<-s.began

	require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("new")).Status.Phase)
	require.False(t, w.lane.claim(key, w.clock), "nobody else acts for what is being removed")
	s.letGo <- struct{}{}
	<-removed
	w.lane.queues[removing].Done(key)
	w.settle()
	require.Nil(t, w.job("gone"))
}

func TestWhatWasDecidedAnewGoesToItsOwnWorkers(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("gone"))
	job := w.job("gone").DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	require.NoError(t, w.store.Update(job))

	w.actOne(t.Context(), submitting, "default/gone")
	require.Zero(t, w.schedd.Calls(scheddtest.Remove))
	require.Equal(t, 1, w.lane.queues[removing].Len())
	w.settle()
	require.Nil(t, w.job("gone"))
}

func TestTheStatusOfASubmissionUnderWayIsWrittenWhenItIsThroughOrTakesLong(t *testing.T) {
	w := newWorld(t)
	var during []v1alpha1.Phase
	w.asks(busy{w.schedd, func() {
		for range 2 {
			require.NoError(t, w.sync(t.Context(), "default/one"))
			during = append(during, w.job("one").Status.Phase)
			w.clock = w.clock.Add(betweenWrites)
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
	require.NoError(t, w.sync(t.Context(), "default/behind"))
	require.Zero(t, w.writes)
	require.Equal(t, 1, w.lane.queues[submitting].Len())
	w.clock = w.clock.Add(betweenWrites)
	require.NoError(t, w.sync(t.Context(), "default/behind"))
	status := w.job("behind").Status
	require.Equal(t, v1alpha1.PhasePending, status.Phase)
	require.Equal(t, "Waiting", meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSubmitted).Reason)
}

// busy is a schedd that something happens beside while condor_submit runs.
type busy struct {
	*scheddtest.Schedd
	meanwhile func()
}

func (s busy) Submit(ctx context.Context, id schedd.Identity, dir string) (schedd.Cluster, error) {
	s.meanwhile()
	return s.Schedd.Submit(ctx, id, dir)
}
