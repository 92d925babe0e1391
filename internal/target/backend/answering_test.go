package backend_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
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

// answering answers the small question so.
type answering struct {
	backend.Schedd
	err *condor.Error
}

func (s *answering) Ping(context.Context, schedd.Identity, schedd.Permission) (string, error) {
	return "", s.err
}

// As after a start with a clock that is an hour behind: no ticket is valid yet.
func TestAScheddThatIsBackAndLetsNobodyInIsNotCalledStopped(t *testing.T) {
	s := &answering{}
	id := schedd.Identity{Endpoint: schedd.Endpoint{Schedd: "one"}}
	a := &backend.Answering{
		Schedd: s, Now: time.Now, Turned: func(schedd.Endpoint, bool) {},
		Any: func(context.Context, schedd.Endpoint) (schedd.Identity, error) { return id, nil },
	}
	ask := func() backend.Reachability {
		require.Error(t, scheddtest.Err(a.Ping(t.Context(), id, schedd.Reading)))
		return a.State(id.Endpoint)
	}
	refusal := &condor.Error{Kind: condor.Credentials, Stderr: "AUTHENTICATE:1004:Failed to authenticate"}
	s.err = refusal
	require.False(t, ask().Down, "an account is refused by one that answers")
	s.err = &condor.Error{Kind: condor.Unreachable, Stderr: "it is stopped"}
	require.Contains(t, ask().Message, "it is stopped")
	s.err = refusal
	after := ask()
	require.True(t, after.Down)
	require.Equal(t, "Credentials", after.Reason)
	require.Contains(t, after.Message, "Failed to authenticate")
	require.NotContains(t, after.Message, "it is stopped")
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

// long has a history of which a whole reading does not end before it is let go.
type long struct {
	late
	letGo         chan struct{}
	mu            sync.Mutex
	reading, most int
	changes       int
}

func (s *long) Query(_ context.Context, _ schedd.Identity, q schedd.Query, _ condor.JobFunc) error {
	s.add(&s.reading, 1)
	defer s.add(&s.reading, -1)
	time.Sleep(100 * time.Millisecond)
	if q.Left.Limit == 0 {
		<-s.letGo
	}
	return nil
}

func (s *long) Change(context.Context, schedd.Identity, schedd.Change) (schedd.Outcome, error) {
	s.add(&s.changes, 1)
	return schedd.Outcome{}, nil
}

func (s *long) add(to *int, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*to += n
	s.most = max(s.most, s.reading)
}

func TestWhoeverWaitsToReadTheHistoryHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &long{letGo: make(chan struct{})}
		id := schedd.Identity{Endpoint: schedd.Endpoint{Schedd: "one"}}
		a := &backend.Answering{
			Schedd: s, Now: time.Now, Turned: func(schedd.Endpoint, bool) {},
			Any:  func(context.Context, schedd.Endpoint) (schedd.Identity, error) { return id, nil },
			Most: backend.Pace{Commands: 2, PerSecond: 50},
		}
		var all sync.WaitGroup
		reads := func(ctx context.Context, limit int, want error) {
			left := schedd.Query{Left: &schedd.HistoryBounds{Limit: limit}}
			require.ErrorIs(t, a.Query(ctx, id, left, nil), want)
		}
		reads(t.Context(), 1, nil)
		for range 3 {
			all.Go(func() { reads(t.Context(), 0, nil) })
		}
		all.Go(func() { reads(t.Context(), 1, nil) })
		time.Sleep(time.Minute)
		gone, cancel := context.WithCancel(t.Context())
		all.Go(func() { reads(gone, 0, context.Canceled) })
		all.Go(func() { require.NoError(t, scheddtest.Err(a.Change(t.Context(), id, nil))) })
		time.Sleep(time.Minute)
		changes := s.changes
		cancel()
		synctest.Wait()
		close(s.letGo)
		all.Wait()
		require.Equal(t, 1, changes, "only the one that reads has a place")
		require.Equal(t, 1, s.most)
		require.NoError(t, scheddtest.Err(a.Daemon(t.Context(), id)))
		require.Empty(t, a.Known()[id.Endpoint].Slowed, "the answer came late, but it was not slow")
	})
}
