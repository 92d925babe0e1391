package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

func TestAQueueThatIsEmptyForAMinuteFailsNothing(t *testing.T) {
	w := newWorld(t)
	var names []string
	for i := range 20 {
		names = append(names, "job"+string(rune('a'+i)))
		w.apply(htcjob(names[i]))
		w.schedd.Run(i+1, 0)
	}
	w.crosscheck()
	all := w.schedd.Jobs()
	vanish := func() {
		for i := range names {
			w.schedd.Lose(i+1, -1)
		}
	}
	passes := func(n int, apart time.Duration) {
		for range n {
			w.clock = w.clock.Add(apart)
			w.crosscheck()
			w.later(time.Second)
		}
	}
	each := func(phase v1alpha1.Phase) {
		for _, name := range names {
			require.Equal(t, phase, w.job(name).Status.Phase, name)
		}
	}
	reachable := func() (is metav1.ConditionStatus, reason, message string) {
		c := meta.FindStatusCondition(w.job("joba").Status.Conditions, v1alpha1.ConditionBackendReachable)
		return c.Status, c.Reason, c.Message
	}
	vanish()
	passes(3, 20*time.Second)
	each(v1alpha1.PhaseRunning)
	is, reason, message := reachable()
	require.Equal(t, metav1.ConditionUnknown, is)
	require.Equal(t, backend.ReasonJobsMissing, reason)
	require.Contains(
		t,
		message,
		"20 of htcd's jobs that were there, and more than half of the open jobs are missing at once",
	)
	require.Equal(t, backend.ReasonJobsMissing, w.job("joba").Status.Reason)
	w.schedd.Put(all...)
	passes(2, time.Minute)
	each(v1alpha1.PhaseRunning)
	is, reason, _ = reachable()
	require.Equal(t, []any{metav1.ConditionTrue, "Answered"}, []any{is, reason})

	vanish()
	passes(30, time.Minute)
	each(v1alpha1.PhaseRunning)
	passes(40, time.Minute)
	each(v1alpha1.PhaseFailed)
	require.Equal(t, crosscheck.ReasonLost, w.job("joba").Status.Failures[0].Reason)
}

func TestWhatWasCalledLostIsTakenBackWhenItIsThereAgain(t *testing.T) {
	passes := func(w *world, n int) {
		for range n {
			w.crosscheck()
			w.later(time.Minute)
		}
	}
	lost := func(t *testing.T) (w *world, cluster []condor.Job) {
		w = newWorld(t)
		w.apply(htcjob("one", queueOf(2)))
		w.schedd.Run(1, 0)
		w.schedd.Run(1, 1)
		w.crosscheck()
		cluster = w.schedd.Jobs()
		w.schedd.Lose(1, -1)
		passes(w, 3)
		require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
		return w, cluster
	}
	t.Run("in the queue", func(t *testing.T) {
		w, cluster := lost(t)
		w.schedd.Put(cluster...)
		passes(w, 2)
		require.Equal(t, v1alpha1.PhaseRunning, w.job("one").Status.Phase)
		require.EqualValues(t, 2, w.job("one").Status.Running)
		require.Nil(t, w.job("one").Status.CompletionTime)
		w.schedd.Complete(1, 0, 0)
		w.schedd.Complete(1, 1, 0)
		passes(w, 2)
		require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	})
	t.Run("in the history", func(t *testing.T) {
		w, cluster := lost(t)
		w.schedd.Put(cluster...)
		w.schedd.Complete(1, 0, 0)
		w.schedd.Complete(1, 1, 3)
		w.schedd.Leave(1, 0)
		w.schedd.Leave(1, 1)
		passes(w, 2)
		status := w.job("one").Status
		require.Equal(
			t,
			[]any{v1alpha1.PhaseFailed, int32(1), int32(1)},
			[]any{status.Phase, status.Succeeded, status.Failed},
		)
		require.EqualValues(t, 3, *status.Failures[0].ExitCode)
	})
	t.Run("unless it was sent anew", func(t *testing.T) {
		w, cluster := lost(t)
		again := w.job("one").DeepCopy()
		again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"}
		w.write(again)
		w.later(time.Minute)
		require.EqualValues(t, 2, w.job("one").Status.Attempt)
		w.schedd.Put(cluster...)
		passes(w, 2)
		require.EqualValues(t, 2, w.job("one").Status.Attempt)
		require.EqualValues(t, 2, w.job("one").Status.ClusterID)
	})
}

func TestASuspensionDoesNotTakeAnotherQueueForItsOwn(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Run(1, 0)
	w.crosscheck()
	cluster := w.schedd.Jobs()
	w.clock = w.clock.Add(5 * time.Second)
	w.schedd.Restart()
	w.schedd.Reset() // its spool is not mounted, which no pass has seen yet
	suspended := w.job("one").DeepCopy()
	suspended.Spec.Suspend = true
	suspended.Generation++
	w.write(suspended)
	stops := func(d time.Duration) {
		for range 5 {
			w.later(d)
		}
	}
	stops(20 * time.Second)
	require.Equal(t, v1alpha1.PhaseRunning, w.job("one").Status.Phase)
	require.Equal(t, backend.ReasonJobsMissing, meta.FindStatusCondition(
		w.job("one").Status.Conditions, v1alpha1.ConditionBackendReachable).Reason)
	w.schedd.Put(cluster...)
	stops(20 * time.Second)
	require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
	require.Empty(t, w.schedd.Jobs(), "what was there again was removed")
}
