package inputs

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStagings(t *testing.T) {
	var s Stagings
	one, end := s.Begin(t.Context(), "n/1")
	two, endTwo := s.Begin(t.Context(), "n/2")
	s.Stop("n/1")
	require.ErrorIs(t, context.Cause(one), ErrStopped)
	require.NoError(t, two.Err())
	failure := errors.New("something")
	require.ErrorIs(t, stopped(one, failure), ErrStopped)
	require.NoError(t, stopped(one, nil), "it was complete before")
	require.ErrorIs(t, stopped(two, failure), failure)
	end()
	endTwo()
	require.ErrorIs(t, stopped(two, failure), failure)
	s.Stop("n/2")
	again, end := s.Begin(t.Context(), "n/1")
	require.NoError(t, again.Err())
	s.Close()
	require.ErrorIs(t, context.Cause(again), ErrStopped)
	late, endLate := s.Begin(t.Context(), "n/3")
	require.ErrorIs(t, context.Cause(late), ErrStopped)
	end()
	endLate()
	require.Empty(t, s.stop)
}
