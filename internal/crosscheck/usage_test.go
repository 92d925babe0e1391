package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestTheUsageOfAJobIsNotedAtItsEnd(t *testing.T) {
	at := time.Unix(5000, 0)
	code := 0
	ad := condor.Job{
		Cluster:      7,
		Status:       condor.Running,
		JobStartDate: 4000,
		UserCPU:      10,
		MemoryUsage:  300,
		RequestCpus:  1,
	}
	open := ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.Idle)}
	running, _ := Ad(ad, at).Apply(open)
	require.Empty(t, running.Usage, "it would be written at each look")

	ended, _ := Callback(0, at).Apply(running)
	require.Empty(t, ended.Usage)
	ad.Status, ad.ExitCode, ad.CompletionDate = condor.Completed, &code, 4100
	confirmed, changed := Ad(ad, at).Apply(ended)
	require.True(t, changed)
	require.Equal(t, "10000 100 300 0 1 0 0", confirmed.Usage)
	_, changed = Ad(ad, at.Add(time.Hour)).Apply(confirmed)
	require.False(t, changed)
}
