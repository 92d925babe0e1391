package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestALeaderThatIsNotSureOfItsLeaseSendsNothing(t *testing.T) {
	pool := scheddtest.New()
	sure := errUnsure
	fenced := fencedSchedd{pool, func() error { return sure }}
	_, err := fenced.Submit(t.Context(), schedd.Identity{}, t.TempDir())
	require.ErrorIs(t, err, errUnsure)
	require.Zero(t, pool.Calls(scheddtest.Submit))
	sure = nil
	_, _ = fenced.Submit(t.Context(), schedd.Identity{}, t.TempDir())
	require.Equal(t, 1, pool.Calls(scheddtest.Submit))
}
