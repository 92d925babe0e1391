package backend

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
)

// three is a pool of three schedds.
type three struct {
	Several
	open  map[schedd.Endpoint]int
	state map[string]Reachability
	mute  map[string]bool // do not answer
	asked []string
	clock time.Time
	names []string
}

func newThree() *three {
	s := &three{
		open:  map[schedd.Endpoint]int{},
		state: map[string]Reachability{},
		mute:  map[string]bool{},
		clock: time.Now(),
		names: []string{"a", "b", "c"},
	}
	s.Several = Several{
		Schedd: s, Credentials: s, Limits: &Limits{}, Now: func() time.Time { return s.clock },
		Open: func(context.Context) (map[schedd.Endpoint]int, error) { return s.open, nil },
	}
	return s
}

func (s *three) State(e schedd.Endpoint) Reachability { return s.state[e.Schedd] }

func (s *three) Ping(_ context.Context, id schedd.Identity, _ schedd.Permission) (string, error) {
	name := id.Endpoint.Schedd
	s.asked = append(s.asked, name)
	s.state[name] = Reachability{Asked: true, At: s.clock, Down: s.mute[name]}
	if s.mute[name] {
		return "", &silence{id.Endpoint, errors.New(name + " is silent")}
	}
	return "", nil
}

func (s *three) Identity(_ context.Context, t Target) (schedd.Identity, error) {
	return schedd.Identity{CCache: "robot", Endpoint: t.Endpoint}, nil
}

func (s *three) Common(context.Context, schedd.Endpoint) (schedd.Identity, error) { panic("unused") }
func (s *three) Any(context.Context, schedd.Endpoint) (schedd.Identity, error)    { panic("unused") }

func (s *three) choose(t *testing.T) string {
	t.Helper()
	s.asked = nil
	at, id, err := s.Choose(t.Context(), Target{}, s.names, 1)
	require.NoError(t, err)
	require.Equal(t, at.Endpoint, id.Endpoint)
	require.Equal(t, at.Endpoint, s.Last(s.names))
	return at.Endpoint.Schedd
}

func at(name string) schedd.Endpoint { return schedd.Endpoint{Schedd: name} }

func TestOfSeveralScheddsTheOneWithTheFewestOpenJobsIsChosen(t *testing.T) {
	s := newThree()
	s.open = map[schedd.Endpoint]int{at("a"): 5, at("b"): 3, at("c"): 4}
	require.Equal(t, "b", s.choose(t))
	require.Equal(t, []string{"b"}, s.asked, "it was not known whether it answers")
	s.open[at("b")] = 5
	require.Equal(t, "c", s.choose(t))
}

func TestManySubmissionsAtOnceAreSpread(t *testing.T) {
	s := newThree()
	s.Open = func(context.Context) (map[schedd.Endpoint]int, error) {
		s.clock = s.clock.Add(50 * time.Millisecond) // for which it rests
		return map[schedd.Endpoint]int{}, nil
	}
	n := map[string]int{}
	for range 30 {
		n[s.choose(t)]++
	}
	require.Equal(t, map[string]int{"a": 10, "b": 10, "c": 10}, n)
}

func TestOneThatDoesNotAnswerIsLeftOut(t *testing.T) {
	s := newThree()
	s.open = map[schedd.Endpoint]int{at("b"): 1, at("c"): 2}
	s.mute["a"] = true
	require.Equal(t, "b", s.choose(t))
	require.Equal(t, []string{"a", "b"}, s.asked)
	require.Equal(t, "b", s.choose(t))
	require.Empty(t, s.asked, "it is not asked each time")
	s.clock = s.clock.Add(askAgain)
	s.mute["a"] = false
	require.Equal(t, "a", s.choose(t))
}

func TestIfNoneAnswersAllAreNamed(t *testing.T) {
	s := newThree()
	s.mute = map[string]bool{"a": true, "b": true, "c": true}
	for range 2 {
		_, _, err := s.Choose(t.Context(), Target{}, s.names, 1)
		require.EqualError(t, err, "none of the pool's schedds answers: a is silent; b is silent; c is silent")
		require.Equal(t, TheSchedd, Explain(err).With)
	}
	s.mute["c"] = false
	require.Equal(t, "c", s.choose(t), "one is asked again at once if there is no better one")
}

func TestOneAtItsLimitIsTheLastChoice(t *testing.T) {
	s := newThree()
	s.open = map[schedd.Endpoint]int{at("b"): 1, at("c"): 2}
	s.Limits.Met(schedd.Identity{CCache: "robot", Endpoint: at("a")}, 1, errors.New("MAX_JOBS_PER_OWNER"), s.clock)
	require.Equal(t, "b", s.choose(t))
	s.clock = s.clock.Add(firstPause)
	require.Equal(t, "a", s.choose(t), "it is tried again")
	s.Limits.Over(schedd.Identity{CCache: "robot", Endpoint: at("a")}, 1)
	require.Equal(t, "a", s.choose(t))
}
