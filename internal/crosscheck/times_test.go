package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestARunHasItsFirstStartAndItsLastEnd(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	ago := func(seconds int64) int64 { return at.Unix() - seconds }
	run := ledger.Run{Created: at.Add(-time.Hour)}
	observed := func(jobs ...condor.Job) map[int]Observation {
		all := map[int]Observation{}
		for i, j := range jobs {
			all[i] = Ad(j, at)
		}
		return all
	}
	first := withTimes(run, observed(
		condor.Job{Owner: "alice", Status: condor.Running, JobStartDate: ago(100)},
		condor.Job{Owner: "alice", Status: condor.Idle},
		condor.Job{
			Owner:                "alice",
			Status:               condor.Completed,
			JobStartDate:         ago(90),
			CompletionDate:       ago(50),
			EnteredCurrentStatus: ago(40),
		},
	), at)
	require.Equal(t, "alice", first.Account)
	require.Equal(t, ago(100), first.Started.Unix())
	require.Equal(t, ago(50), first.Finished.Unix())

	second := withTimes(first, observed(
		condor.Job{
			Status:               condor.Removed,
			LastStatus:           condor.Completed,
			JobStartDate:         ago(95),
			CompletionDate:       ago(60),
			EnteredCurrentStatus: ago(1),
		},
		condor.Job{Status: condor.Removed, LastStatus: condor.Idle, EnteredCurrentStatus: ago(2)},
	), at)
	require.True(t, sameTimes(first, second), "one that never started took no time")
	third := withTimes(
		second,
		observed(
			condor.Job{
				Status:               condor.Removed,
				LastStatus:           condor.Running,
				JobStartDate:         ago(95),
				EnteredCurrentStatus: ago(30),
			},
		),
		at,
	)
	require.Equal(t, ago(30), third.Finished.Unix())

	odd := withTimes(third, observed(
		condor.Job{Status: condor.Completed, JobStartDate: 1, CompletionDate: 1 << 50},
		condor.Job{Status: condor.Completed, JobStartDate: ago(-200_000), CompletionDate: ago(-200_000)},
	), at)
	require.True(t, sameTimes(third, odd), "what the owner has written into the ad")
}
