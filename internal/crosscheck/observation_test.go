package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestAnAdThatRepeatsWhatIsKnownChangesNothing(t *testing.T) {
	for _, status := range []schedd.JobStatus{schedd.Idle, schedd.Running, schedd.TransferringOutput, schedd.Suspended} {
		o := Ad(schedd.Job{Cluster: 1, Status: status}, time.Now())
		was := ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(status), Source: FromHTCondor}
		require.True(t, o.repeats(status))
		_, changed := o.apply(was)
		require.False(t, changed, status)
		require.False(t, o.repeats(schedd.Held), "another state is news")
	}
	require.False(t, Ad(schedd.Job{Cluster: 1, Status: schedd.Held, HoldReasonCode: 1}, time.Now()).repeats(schedd.Held), "so is why it is held")
	require.False(t, Ad(schedd.Job{Cluster: 1, Status: schedd.Completed, ExitCode: new(int)}, time.Now()).repeats(schedd.Completed))
}
