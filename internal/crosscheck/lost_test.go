package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/target/backend"
)

func TestLostJobsAreLookedForEverMoreRarely(t *testing.T) {
	var g Gate
	const pause = 10 * time.Minute
	at := time.Unix(0, 0)
	looks := 0
	for passed := time.Duration(0); passed < lookBack; passed += time.Minute {
		if g.mayLookForLost(backend.Target{}, at.Add(passed), 7, 2, pause) {
			looks++
		}
	}
	require.Equal(t, 14, looks, "in a week")
	at = at.Add(lookBack)
	require.False(t, g.mayLookForLost(backend.Target{}, at, 7, 1, pause))
	require.True(t, g.mayLookForLost(backend.Target{}, at, 7, 3, pause), "another one was lost")
	require.True(t, g.mayLookForLost(backend.Target{}, at, 8, 3, pause), "the schedd was started")
	require.False(t, g.mayLookForLost(backend.Target{}, at.Add(pause-1), 8, 3, pause))
	require.True(t, g.mayLookForLost(backend.Target{}, at.Add(pause), 8, 3, pause))
	g.lookForLostAgain(backend.Target{})
	require.True(t, g.mayLookForLost(backend.Target{}, at.Add(pause), 8, 3, pause), "it did not answer")
}
