package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// lines returns the submit lines for these commands.
func lines(t *testing.T, d Description, keys ...string) (found []string) {
	t.Helper()
	text, err := submitText(d)
	require.NoError(t, err)
	for l := range strings.Lines(text) {
		for _, key := range keys {
			if strings.HasPrefix(l, key+" = ") {
				found = append(found, strings.TrimSuffix(l, "\n"))
			}
		}
	}
	return found
}

func TestUsersConditionsPassOverThePoolsHold(t *testing.T) {
	d := description()
	d.Options = "periodic_release = NumJobStarts < 3 || x\nperiodic_remove = JobStatus == 5\n"
	require.Equal(
		t,
		[]string{"periodic_release = NumJobStarts < 3 || x", "periodic_remove = JobStatus == 5"},
		lines(t, d, "periodic_release", "periodic_remove"),
		"without a pool nothing changes",
	)

	const not = "(HoldReasonCode =!= 1 || HoldReasonSubCode =!= 7284)"
	d.Tag.Pool = "grid"
	require.Equal(t, []string{
		"periodic_release = " + not + " && (NumJobStarts < 3 || x)",
		"periodic_remove = " + not + " && JobStatus == 5",
	}, lines(t, d, "periodic_release", "periodic_remove"))

	d.JobOptions = JobOptions{
		Deadlines:   condor.Deadlines{HeldDeadline: 7},
		Memory:      1,
		MemoryRetry: &MemoryRetry{Most: 2, Times: 1},
	}
	both := lines(t, d, "periodic_release", "periodic_remove")
	require.Len(t, both, 2)
	require.Contains(t, both[0], " || "+not+" && (NumJobStarts < 3 || x)", "htcd's own release looks at other codes")
	require.Equal(
		t,
		"periodic_remove = JobStatus == 5 && HoldReasonCode =!= 16 && "+not+" && time() - EnteredCurrentStatus > 7 || "+not+" && JobStatus == 5",
		both[1],
	)
}

func TestAPlacementIsARankUnlessTheUserHasOne(t *testing.T) {
	d := description()
	ofD := func() []string { return lines(t, d, "rank", "preferences") }
	require.Empty(t, ofD())
	d.Placement = "Any"
	require.Empty(t, ofD())
	d.Placement = Pack
	require.Equal(t, []string{"rank = 1000000 * (TARGET.Cpus < TARGET.TotalSlotCpus) - TARGET.Cpus"}, ofD())
	d.Placement = Spread
	require.Equal(t, []string{"rank = 1000000 * (TARGET.Cpus >= TARGET.TotalSlotCpus) + TARGET.Cpus"}, ofD())
	d.Options = "rank = Memory"
	require.Equal(t, []string{"rank = Memory"}, ofD())
	d.Options = "preferences = Memory"
	require.Equal(t, []string{"preferences = Memory"}, ofD())
}
