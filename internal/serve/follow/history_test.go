package follow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func TestTheHistoryGoesOnWhereAReaderLeftOff(t *testing.T) {
	w := newWorld(t)
	w.many(1, 3)
	w.many(2, 8)
	w.write(func(tx *ledger.Tx) error { return tx.DeleteRuns("u") })
	w.many(3, 4)
	list := func(q aggregate.Query) []aggregate.Past {
		answer, err := w.History(t.Context(), q)
		return linesOf[aggregate.Past](t, answer, err)
	}
	all := list(aggregate.Query{Namespace: "ns"})
	require.Len(t, all, 3)
	require.Equal(t, "Open", all[0].State)
	require.Equal(t, "Removed", all[1].State)
	require.Equal(t, []int{8, 1, 1}, []int{all[1].Jobs, all[1].Succeeded, all[1].Failed})
	require.Empty(t, list(aggregate.Query{Namespace: "other"}))
	require.Equal(t, all, list(aggregate.Query{}), "of all namespaces")
	first := list(aggregate.Query{Limit: 1})
	require.Equal(t, all[:1], first)
	require.Equal(t, all[1:], list(aggregate.Query{Past: aggregate.PastQuery{Before: first[0].PastKey}}))
	require.Equal(t, all[:2], list(aggregate.Query{Past: aggregate.PastQuery{Failed: true}}), "the fourth job fails")
}

func TestHowAnAttemptEnded(t *testing.T) {
	now := time.Now()
	for want, p := range map[string]ledger.Past{
		"Open":      {State: ledger.Submitted},
		"Refused":   {State: ledger.Refused, Ended: now},
		"Removed":   {State: ledger.Submitted, Gone: now},
		"Failed":    {State: ledger.Submitted, Ended: now, Jobs: 3, Succeeded: 2, Failed: 1},
		"Succeeded": {State: ledger.Submitted, Ended: now, Jobs: 3, Succeeded: 3, Gone: now},
	} {
		require.Equal(t, want, stateOfPast(p))
	}
}
