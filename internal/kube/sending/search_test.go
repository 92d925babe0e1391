package sending

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// robots are credentials of one account.
type robots struct{ backend.Credentials }

func (robots) Common(context.Context, schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{CCache: scheddtest.Robot}, nil
}

func TestWhatNeverRanSaysNothingOfTheJobsAfterItInAnAnswer(t *testing.T) {
	s := scheddtest.New()
	tag := condor.Tag{UID: "u", Attempt: 1}
	s.Put(
		condor.Job{
			Cluster: 1, Tag: tag, Owner: scheddtest.Robot, Status: condor.Removed, Reasoned: true,
			RemoveReason: "Staging of job files failed",
		},
		condor.Job{Cluster: 1, Proc: 1, Tag: tag, Owner: scheddtest.Robot, Status: condor.Running},
	)
	sender := Sender{Schedd: s, Owners: backend.NewOwners(s, robots{})}
	found, err := sender.Search(
		t.Context(),
		backend.Target{},
		schedd.Identity{CCache: scheddtest.Robot},
		tag.Constraint(),
		"",
	)
	require.NoError(t, err)
	require.Len(t, found.Unstaged, 1)
	require.Len(t, found.Queued, 1)
	require.Len(t, found.Of(1).Queued, 1)
	require.Empty(t, found.Of(2).Queued)
	require.Equal(t, 1, found.Newest(), "what was found is still there")
}
