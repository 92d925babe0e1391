package recovery

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

func TestALookupThatBeganBeforeASubmissionEndedIsNotBelieved(t *testing.T) {
	book := ledgertest.Open(t)
	runs := []ledger.Run{
		{UID: "other", Attempt: 1, State: ledger.Intent},
		{UID: "one", Attempt: 1, State: ledger.Intent},
	}
	for i := range runs {
		runs[i].Namespace, runs[i].Name, runs[i].Procs, runs[i].Schedd = "default", runs[i].UID, 1, scheddtest.Name
		runs[i].TokenHash, runs[i].TempDir = []byte("hash"), "/staging/"+runs[i].UID
		require.NoError(t, book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.InsertRun(runs[i]) }))
	}
	now := time.Unix(1000, 0)
	queue := scheddtest.New()
	lookups := Lookups{Ledger: book, Schedd: queue, Tries: &Tries{}, Now: func() time.Time { return now },
		As: func(context.Context, backend.Target) (schedd.Identity, error) { return schedd.Identity{}, nil }}

	asked, absent, err := lookups.NoTrace(t.Context(), runs[1], time.Time{})
	require.NoError(t, err)
	require.True(t, absent)
	require.Equal(t, now, asked)

	now = now.Add(time.Second) // a submission in flight has ended
	queue.Put(condor.Job{Cluster: 1, Tag: condor.Tag{UID: "one", Attempt: 1}, Status: condor.Idle, StageInFinish: 1})
	_, absent, err = lookups.NoTrace(t.Context(), runs[1], asked)
	require.NoError(t, err)
	require.False(t, absent)
	_, absent, err = lookups.NoTrace(t.Context(), runs[0], asked)
	require.NoError(t, err)
	require.True(t, absent, "the same answer serves the other")
	require.Equal(t, 2, queue.Calls(scheddtest.Queue))
}
