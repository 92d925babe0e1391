package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestHowLongWhatIsMissingMayBeAway(t *testing.T) {
	for name, c := range map[string]struct {
		open, missing int
		want          time.Duration
	}{
		"the only job":                     {1, 1, LostAfter},
		"all of a few":                     {9, 9, LostAfter},
		"all of many":                      {10, 10, LostAfterMany},
		"more than half":                   {100_000, 50_001, LostAfterMany},
		"half":                             {100_000, 50_000, LostAfter},
		"a thousand of a hundred thousand": {100_000, 1_000, LostAfter},
		"more than are open, as some ended just now": {15, 20, LostAfterMany},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, lostAfter(c.open, c.missing)) })
	}
}

func TestWhatIsThereAgainInTimeIsNotLost(t *testing.T) {
	start := time.Unix(1000, 0)
	p := ledger.Proc{Status: ledger.StatusOpen, JobStatus: 2}
	miss := func(after time.Duration) {
		o := Absence("", start.Add(after))
		o.lostAfter = LostAfterMany
		p, _ = o.Apply(p)
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
