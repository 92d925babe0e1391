package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestWhetherWhatIsMissingIsDoubted(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	sent := now.Add(-2 * time.Hour)
	old := schedd.Daemon{Started: sent.Unix() - 100, QueueBorn: sent.Unix() - 1000}
	for name, c := range map[string]struct {
		open, missing int
		daemon        schedd.Daemon
		stop          string
		want          Doubt
	}{
		"the only job":                     {1, 1, old, "", ""},
		"all of a few":                     {9, 9, old, "", ""},
		"all of many":                      {10, 10, old, "", ManyMissing},
		"more than half":                   {100_000, 50_001, old, "", ManyMissing},
		"half":                             {100_000, 50_000, old, "", ""},
		"a thousand of a hundred thousand": {100_000, 1_000, old, "", ""},
		"more than are open, as some ended just now":  {15, 20, old, "", ManyMissing},
		"all of many, which htcd removes":             {10, 10, old, StopSuspended, ""},
		"the queue is younger than what htcd removes": {1, 1, schedd.Daemon{QueueBorn: now.Unix() - 5000}, StopSuspended, OtherQueue},
		"nothing is known of the schedd":              {1, 1, schedd.Daemon{}, "", ""},
		"the schedd was started a while ago":          {1, 1, schedd.Daemon{Started: now.Unix() - 3599}, "", NewStart},
		"the schedd was started long ago":             {1, 1, schedd.Daemon{Started: now.Unix() - 3600}, "", ""},
		"the queue is younger than the job":           {1, 1, schedd.Daemon{Started: now.Unix() - 5000, QueueBorn: now.Unix() - 5000}, "", OtherQueue},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(
				t,
				c.want,
				DoubtOf(ledger.Run{Submitted: sent, Stop: c.stop}, c.daemon, c.open, c.missing, now),
			)
		})
	}
}

func TestAQueueIsAnotherThanThatToWhichSomethingWasSent(t *testing.T) {
	sent := time.Unix(1_000_000, 0)
	require.True(t, Another(schedd.Daemon{QueueBorn: 1_000_001}, sent))
	require.False(t, Another(schedd.Daemon{QueueBorn: 1_000_000}, sent))
	require.False(t, Another(schedd.Daemon{}, sent), "it does not say")
	require.False(t, Another(schedd.Daemon{QueueBorn: 1_000_001}, time.Time{}), "nobody knows when it was sent")

	answers := func(born int64, queues ...schedd.Queue) schedd.Daemon {
		return schedd.Daemon{QueueBorn: born, Queues: queues}
	}
	since := func(born, from int64) schedd.Queue { return schedd.Queue{Born: born, Since: time.Unix(from, 0)} }
	usual, older := since(500, 900_000), since(7, 1_000_001)
	require.False(t, Another(answers(500, usual), sent))
	require.True(t, Another(answers(7, usual, older), sent), "an older one has come in its place")
	require.False(t, Another(answers(500, usual, older, since(500, 1_000_100)), sent), "it is back")
	require.True(
		t,
		Another(answers(500, usual, since(7, 900_001), since(500, 1_000_100)), sent),
		"it was sent to the older one",
	)
	require.False(t, Another(answers(7, since(7, 1_000_050)), sent), "it was there before that was noted")
	require.True(t, Another(answers(7, since(500, 1_000_050), since(7, 1_000_100)), sent))
	require.False(
		t,
		Another(answers(7, since(1_000_040, 1_000_050), since(7, 1_000_100)), sent),
		"the first one that is known was not there yet",
	)
}

func TestWhatIsThereAgainInTimeIsNotLost(t *testing.T) {
	start := time.Unix(1000, 0)
	p := ledger.Proc{Status: ledger.StatusOpen, JobStatus: 2}
	miss := func(after time.Duration) {
		p, _ = Absence("", ManyMissing, start.Add(after)).Apply(p)
	}
	miss(0)
	miss(LostAfter)
	miss(LostAfterMany - time.Second)
	require.Equal(t, ledger.StatusOpen, p.Status)
	p, _ = Observation{source: FromHTCondor, at: start.Add(LostAfterMany), jobStatus: 2}.Apply(p)
	require.Zero(t, p.Absent, "it counts from the beginning")
	miss(2 * LostAfterMany)
	require.Equal(t, ledger.StatusOpen, p.Status)
	miss(3 * LostAfterMany)
	require.Equal(t, ledger.StatusFailed, p.Status)
	require.Equal(t, ReasonLost, p.Reason)
}
