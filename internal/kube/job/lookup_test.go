package job

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestOpenIntentsAreLookedForTogether(t *testing.T) {
	const n = 40
	w := newWorld(t)
	for i := range n {
		w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: i%10 == 0}) // every tenth had arrived
		w.apply(htcjob(fmt.Sprintf("job-%d", i)))
	}
	require.Len(t, w.schedd.Jobs(), n/10)
	w.restart()
	asked := w.schedd.Calls(scheddtest.Queue)
	for range 3 {
		w.later(5 * time.Second)
	}
	require.Len(t, w.schedd.Jobs(), n, "every one is sent once")
	for i := range n {
		require.Equal(t, v1alpha1.PhaseIdle, w.job(fmt.Sprintf("job-%d", i)).Status.Phase)
	}
	require.LessOrEqual(t, w.schedd.Calls(scheddtest.Queue)-asked, n/2, "not a question for each")
}
