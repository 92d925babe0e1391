package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
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
	vanish()
	passes(3, 20*time.Second)
	each(v1alpha1.PhaseRunning)
	w.schedd.Put(all...)
	passes(2, time.Minute)
	each(v1alpha1.PhaseRunning)

	vanish()
	passes(30, time.Minute)
	each(v1alpha1.PhaseRunning)
	passes(40, time.Minute)
	each(v1alpha1.PhaseFailed)
	require.Equal(t, crosscheck.ReasonLost, w.job("joba").Status.Failures[0].Reason)
}
