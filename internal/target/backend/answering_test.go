package backend_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// slow answers the small question when it is told to.
type slow struct {
	backend.Schedd
	asked chan struct{}
	again chan struct{}
}

func (s slow) Ping(ctx context.Context, _ schedd.Identity, _ schedd.Permission) (string, error) {
	s.asked <- struct{}{}
	select {
	case <-s.again:
		return "", nil
	case <-ctx.Done():
		return "", &condor.Error{Kind: condor.Timeout}
	}
}

func TestACancelledCallerMakesNoScheddSeemDown(t *testing.T) {
	s := slow{asked: make(chan struct{}), again: make(chan struct{})}
	id := schedd.Identity{Endpoint: schedd.Endpoint{Schedd: "one"}}
	a := &backend.Answering{
		Schedd: s, Now: time.Now, Turned: func(schedd.Endpoint, bool) {},
		Any: func(context.Context, schedd.Endpoint) (schedd.Identity, error) { return id, nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- scheddtest.Err(a.Ping(ctx, id, schedd.Reading)) }()
	<-s.asked
	go func() { second <- scheddtest.Err(a.Ping(t.Context(), id, schedd.Reading)) }()
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	close(s.again)
	select { // one that came too late to share the question asks its own
	case <-s.asked:
		require.NoError(t, <-second)
	case err := <-second:
		require.NoError(t, err)
	}
	require.False(t, a.State(id.Endpoint).Down)
}

// late answers small questions and lets nothing else end.
type late struct{ backend.Schedd }

func (late) Ping(context.Context, schedd.Identity, schedd.Permission) (string, error) { return "", nil }

func (late) Submit(context.Context, schedd.Identity, string) (condor.Cluster, error) {
	return condor.Cluster{}, &condor.Error{Kind: condor.Timeout}
}

func (late) Query(context.Context, schedd.Identity, schedd.Query, condor.JobFunc) error {
	return &condor.Error{Kind: condor.Timeout}
}

func (late) Daemon(context.Context, schedd.Identity) (schedd.Daemon, error) {
	return schedd.Daemon{}, nil
}

func TestAScheddThatEndsNoQuestionInTimeIsAskedLess(t *testing.T) {
	id := schedd.Identity{Endpoint: schedd.Endpoint{Schedd: "one"}}
	a := &backend.Answering{
		Schedd: late{}, Now: time.Now, Turned: func(schedd.Endpoint, bool) {},
		Any:  func(context.Context, schedd.Endpoint) (schedd.Identity, error) { return id, nil },
		Most: backend.DefaultPace,
	}
	learns := func() {
		_, err := a.Daemon(t.Context(), id)
		require.NoError(t, err)
	}
	_, err := a.Submit(t.Context(), id, "")
	require.Error(t, err)
	learns()
	require.Equal(t, backend.DefaultPace, a.Known()[id.Endpoint].Pace, "how long that takes is for its user to decide")
	for range 2 {
		require.Error(t, a.Query(t.Context(), id, schedd.Query{}, nil))
		learns()
	}
	known := a.Known()[id.Endpoint]
	require.False(t, known.Down)
	require.Equal(t, backend.DefaultPace.Commands/4, known.Pace.Commands)
	require.Contains(t, known.Slowed, "deadline")
}
