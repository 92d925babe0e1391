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
		require.True(t, o.Repeats(status))
		_, changed := o.Apply(was)
		require.False(t, changed, status)
		require.False(t, o.Repeats(schedd.Held), "another state is news")
	}
	require.False(t, Ad(schedd.Job{Cluster: 1, Status: schedd.Held, HoldReasonCode: 1}, time.Now()).Repeats(schedd.Held), "so is why it is held")
	require.False(t, Ad(schedd.Job{Cluster: 1, Status: schedd.Completed, ExitCode: new(int)}, time.Now()).Repeats(schedd.Completed))
}

func TestTheHoldOfASuspendedPoolIsToldApart(t *testing.T) {
	held := schedd.Job{Cluster: 1, Status: schedd.Held, HoldReasonCode: schedd.PoolHoldCode, HoldReasonSubCode: schedd.PoolHoldSubCode}
	is, changed := Ad(held, time.Unix(1000, 0)).Apply(ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(schedd.Idle)})
	require.True(t, changed)
	require.Equal(t, ReasonPoolSuspended, is.Reason)
	require.Equal(t, "its HTCPool is suspended (hold code 1/7284)", is.Message)

	held.HoldReasonSubCode, held.HoldReason = 0, "via condor_hold"
	is, _ = Ad(held, time.Unix(1001, 0)).Apply(is)
	require.Equal(t, "Held", is.Reason)
	require.Equal(t, "via condor_hold (hold code 1/0)", is.Message)
}
