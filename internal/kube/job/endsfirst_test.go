package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/notify"
)

func TestWhatHasEndedDoesNotWaitBehindOtherNews(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one", queueOf(2)))
	w.apply(htcjob("two"))
	waiting := func() []int { return []int{w.Ended.Len(), w.Changed.Len()} }

	require.NoError(t, w.says("one", 0, notify.Callback{}))
	require.Equal(t, []int{0, 1}, waiting(), "one of two jobs is no end")
	require.NoError(t, w.says("one", 1, notify.Callback{}))
	require.Equal(t, []int{1, 1}, waiting())

	w.schedd.Complete(2, 0, 0)
	require.NoError(t, w.Crosscheck(t.Context()))
	require.Equal(t, 2, w.Ended.Len(), "without a callback, too")
	w.settle()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("two").Status.Phase)
}
