package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestOutputIsFetchedInGrowingIntervals(t *testing.T) {
	sent := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	dag := DAG{
		Run: ledger.Run{State: ledger.Submitted, Submitted: sent},
		Steps: []ledger.StepCounts{
			{NodeCounts: ledger.NodeCounts{Counts: ledger.Counts{Succeeded: 3, Failed: 1, Active: 6}}},
		},
	}
	at := func(age, last time.Duration, had int) time.Time {
		s := Situation{DAGs: []DAG{dag}, Unfetched: true, Now: sent.Add(age)}
		if last == 0 {
			return s.partAt(time.Time{}, had)
		}
		return s.partAt(sent.Add(last), had)
	}
	require.Equal(t, sent.Add(30*time.Second), at(time.Second, 0, 0))
	require.Equal(t, sent.Add(70*time.Second), at(50*time.Second, 40*time.Second, 2))
	require.Equal(t, sent.Add(66*time.Minute), at(time.Hour, time.Hour, 2), "a tenth of its age")
	require.True(t, at(time.Hour, time.Hour, 4).IsZero(), "nothing more has ended")
	dag.Run.State = ledger.Intent
	require.True(t, at(time.Hour, 0, 0).IsZero())
}
