package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/notify"
)

func TestAnHTCJobTakesAFewRequestsToTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		runs time.Duration // until its end
		most int
	}{
		"a quick one: finalizer; sent, ended, fetched":      {0, 4},
		"a slow one: finalizer; sent, runs, ended, fetched": {time.Minute, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t)
			w.apply(htcjob("one"))
			w.schedd.Run(1, 0)
			if c.runs > 0 { // a job tells its start once it has run for a second
				require.NoError(t, w.tells("one", 0, notify.Callback{Started: true}))
				w.later(c.runs)
				require.Equal(t, v1alpha1.PhaseRunning, w.job("one").Status.Phase)
			}
			require.NoError(t, w.callback("one", 0, 0))
			require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
			w.schedd.Complete(1, 0, 0)
			w.later(reconciler.FirstRetry)
			_, err := w.checkRun(t.Context(), "uid-one") // as the callback causes it
			require.NoError(t, err)
			w.settle()
			w.later(time.Minute)
			w.crosscheck()
			require.Contains(t, w.fetched("one"), "True Fetched")
			require.Equal(t, c.most, w.finalizers+w.writes+len(w.events), "%d statuses, %v", w.writes, w.events)
		})
	}
}
