package follow

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
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

func TestTheHistoryOfOneAccountOrOfFailuresIsFoundAmongMany(t *testing.T) {
	w := newWorld(t)
	const many = procsAtOnce + 10
	w.write(func(tx *ledger.Tx) error {
		for i := range many {
			run := ledger.Run{
				UID:       fmt.Sprint("u", i),
				Attempt:   1,
				Namespace: "ns",
				Name:      fmt.Sprint("job", i),
				State:     ledger.Submitted,
				Created:   time.UnixMilli(int64(i + 1)),
			}
			switch i {
			case 0, many - 1:
				run.Account = "bob"
			case 7:
				run.State = ledger.Refused
			}
			if err := tx.InsertRun(run); err != nil {
				return err
			}
		}
		return nil
	})
	names := func(q aggregate.PastQuery, limit int) (all []string) {
		answer, err := w.History(t.Context(), aggregate.Query{Namespace: "ns", Past: q, Limit: limit})
		for _, p := range linesOf[aggregate.Past](t, answer, err) {
			all = append(all, p.Name)
		}
		return all
	}
	require.Equal(t, []string{fmt.Sprint("job", many-1), "job0"}, names(aggregate.PastQuery{Account: "bob"}, 0))
	require.Equal(t, []string{fmt.Sprint("job", many-1)}, names(aggregate.PastQuery{Account: "bob"}, 1))
	require.Equal(t, []string{"job7"}, names(aggregate.PastQuery{Failed: true}, 0))
}

func TestHowAnAttemptEnded(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		want string
		past ledger.Past
	}{
		{"Open", ledger.Past{State: ledger.Submitted}},
		{"Refused", ledger.Past{State: ledger.Refused, Ended: now}},
		{"Removed", ledger.Past{State: ledger.Submitted, Gone: now}},
		{"Failed", ledger.Past{State: ledger.Submitted, Ended: now, Jobs: 3, Succeeded: 2, Failed: 1}},
		{"Succeeded", ledger.Past{State: ledger.Submitted, Ended: now, Jobs: 3, Succeeded: 3, Gone: now}},
		{"Succeeded", ledger.Past{Reason: crosscheck.StopSuccess, Ended: now, Jobs: 3, Succeeded: 1, Failed: 2}},
		{"Failed", ledger.Past{Reason: crosscheck.StopFailures, Ended: now, Jobs: 3, Succeeded: 1, Failed: 2}},
		{"Succeeded", ledger.Past{Reason: crosscheck.StopSuspended, Ended: now, Jobs: 3, Succeeded: 3}},
		{"Removed", dag(crosscheck.StopSuspended, 1, 0)},
		{"Failed", dag(crosscheck.StopDeadline, 1, 0)},
		{"Failed", dag(crosscheck.StopAborted, 1, 1)},
		{"Succeeded", dag(crosscheck.StopDeadline, 3, 0)},
		{"Succeeded", dag(crosscheck.StopCompleted, 1, 1)},
		{"Succeeded", dag(crosscheck.StopFinished, 1, 0)},
		{"Removed", dag("", 1, 0)},
		{"Succeeded", dag("", 3, 0)},
	} {
		require.Equal(t, c.want, stateOfPast(c.past), c.past)
	}
}

// dag is a DAG of three nodes that has ended, perhaps since htcd has stopped it.
func dag(stop string, succeeded, failed int) ledger.Past {
	return ledger.Past{
		Kind: ledger.Workflows, State: ledger.Submitted, Reason: stop, Ended: time.Now(),
		Jobs: 3, Succeeded: succeeded, Failed: failed,
	}
}

func TestWhatFailuresAreAskedFor(t *testing.T) {
	failures := aggregate.PastQuery{Failed: true}
	require.True(t, wanted(dag(crosscheck.StopDeadline, 1, 0), failures))
	require.False(t, wanted(dag(crosscheck.StopSuspended, 1, 0), failures))
	enough := ledger.Past{Reason: crosscheck.StopSuccess, Ended: time.Now(), Jobs: 3, Succeeded: 1, Failed: 2}
	require.False(t, wanted(enough, failures), "the others were removed")
}

func TestWhatDAGManUsesIsNotWhatNodesUse(t *testing.T) {
	p := ledger.Past{Usage: `{"jobs":1,"cpu":{"median":"0","worst":"0","worstProc":0}}`}
	require.NotNil(t, pastLine(p).Usage)
	p.Kind = ledger.Workflows
	require.Nil(t, pastLine(p).Usage)
}
