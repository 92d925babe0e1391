package fetch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

// htcd was killed after it had recorded that the output of these jobs is here, and before it let them leave the queue.
func TestTheJobsOfANamespaceWhoseCredentialsAreBrokenDoNotKeepThoseOfOthersInTheQueue(t *testing.T) {
	w := newWorld(t)
	for _, run := range []ledger.Run{w.completedIn("broken", "hers", 2), w.completedIn("default", "his", 2)} {
		for proc := range run.Procs {
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
				p, err := tx.Proc(run.UID, run.Attempt, proc)
				require.NoError(t, err)
				p.Fetched = ledger.IsFetched
				return tx.UpdateProc(p)
			}))
		}
	}
	for range 3 { // it is tried again as long as anything is left
		require.ErrorContains(t, w.TakeUp(t.Context()), "wrong password")
		require.Len(t, w.schedd.Jobs(), 2)
		for _, j := range w.schedd.Jobs() {
			require.Equal(t, "broken", j.Tag.Namespace)
		}
	}
	require.Len(t, w.unreleased.take("broken/hers"), 1, "what is left to be released is remembered once")
}
