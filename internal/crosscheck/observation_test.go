package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAnAdThatRepeatsWhatIsKnownChangesNothing(t *testing.T) {
	for _, status := range []condor.JobStatus{condor.Idle, condor.Running, condor.TransferringOutput,
		condor.Suspended} {
		o := Ad(condor.Job{Cluster: 1, Status: status}, time.Now())
		was := ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(status), Source: FromHTCondor}
		require.True(t, o.Repeats(status))
		_, changed := o.Apply(was)
		require.False(t, changed, status)
		require.False(t, o.Repeats(condor.Held), "another state is news")
	}
	require.False(
		t,
		Ad(condor.Job{Cluster: 1, Status: condor.Held, HoldReasonCode: 1}, time.Now()).Repeats(condor.Held),
		"so is why it is held",
	)
	require.False(
		t,
		Ad(condor.Job{Cluster: 1, Status: condor.Completed, ExitCode: new(int)}, time.Now()).Repeats(condor.Completed),
	)
}

func TestTheHoldOfASuspendedPoolIsToldApart(t *testing.T) {
	held := condor.Job{
		Cluster:           1,
		Status:            condor.Held,
		HoldReasonCode:    condor.PoolHoldCode,
		HoldReasonSubCode: condor.PoolHoldSubCode,
	}
	is, changed := Ad(
		held,
		time.Unix(1000, 0),
	).Apply(ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.Idle)})
	require.True(t, changed)
	require.Equal(t, ReasonPoolSuspended, is.Reason)
	require.Equal(t, "its HTCPool is suspended (hold code 1/7284)", is.Message)

	held.HoldReasonSubCode, held.HoldReason = 0, "via condor_hold"
	is, _ = Ad(held, time.Unix(1001, 0)).Apply(is)
	require.Equal(t, "Held", is.Reason)
	require.Equal(t, "via condor_hold (hold code 1/0)", is.Message)
}

func TestAScheddWhoseClockIsAheadStartsNothingAgain(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	ended, changed := Callback(0, at).Apply(ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.Running)})
	require.True(t, changed)
	running := func(started, clock int64) ledger.Status {
		job := condor.Job{
			Cluster:      1,
			Status:       condor.Running,
			JobStartDate: at.Unix() + started,
			ServerTime:   at.Unix() + clock,
		}
		is, _ := Ad(job, at.Add(2*time.Second)).Apply(ended)
		return is.Status
	}
	require.Equal(
		t,
		ledger.StatusSucceeded,
		running(55, 62),
		"it began 5 s before its end, by a clock that is a minute ahead",
	)
	require.Equal(t, ledger.StatusOpen, running(55, 2))
}

func TestAStartSaysThatWhatWaitsRunsAndNothingElse(t *testing.T) {
	at, code := time.Unix(1000, 0), 3
	for name, c := range map[string]struct {
		was  ledger.Proc
		runs bool
	}{
		"of which nothing is known":  {ledger.Proc{Status: ledger.StatusOpen}, true},
		"idle":                       {ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.Idle), Source: FromHTCondor, Absent: 1, Checked: at}, true},
		"that runs":                  {ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.Running)}, false},
		"held, as was learned since": {ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.Held), Reason: reasonHeld}, false},
		"that transfers its output":  {ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.TransferringOutput)}, false},
		"that has ended":             {ledger.Proc{Status: ledger.StatusSucceeded, Source: FromCallback, Changed: at.Add(-time.Hour)}, false},
		"that has failed":            {ledger.Proc{Status: ledger.StatusFailed, JobStatus: int(condor.Completed), Source: FromHTCondor, ExitCode: &code}, false},
		"that was removed":           {ledger.Proc{Status: ledger.StatusFailed, JobStatus: int(condor.Removed), Source: FromHTCondor, Reason: ReasonRemoved}, false},
		"that was lost":              {ledger.Proc{Status: ledger.StatusFailed, Source: FromHTCondor, Reason: ReasonLost, Absent: 2}, false},
	} {
		t.Run("a job "+name, func(t *testing.T) {
			is, changed := Start(at).Apply(c.was)
			require.Equal(t, c.runs, changed)
			if c.runs {
				require.Equal(t, int(condor.Running), is.JobStatus)
			}
			is.JobStatus = c.was.JobStatus
			require.Equal(t, c.was, is)
		})
	}
}

// Its callback says that the job ends; HTCondor shows it as running until it holds it.
func TestWhatAJobWroteIsKeptUntilItGoesOn(t *testing.T) {
	at := time.Unix(1000, 0)
	shows := func(p ledger.Proc, status condor.JobStatus) ledger.Proc {
		is, _ := Ad(condor.Job{Cluster: 1, Status: status, HoldReasonCode: 12}, at).After(p).Apply(p)
		return is
	}
	wrote, _ := Writing("no file", at).Apply(ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(condor.Idle)})
	held := shows(shows(wrote, condor.Running), condor.Held)
	require.Equal(t, "no file", held.Stderr)
	require.Empty(t, shows(held, condor.Running).Stderr, "it was released")
	require.Empty(t, shows(wrote, condor.Idle).Stderr, "it was evicted")

	earlier := Ad(condor.Job{Cluster: 1, Status: condor.Idle}, at).After(ledger.Proc{Status: ledger.StatusOpen})
	still, _ := earlier.Apply(wrote)
	require.Equal(t, "no file", still.Stderr, "HTCondor was asked before the job wrote it")
}
