package kube

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/jobcredentials"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestTheCopiesOfCredentialsAreBounded(t *testing.T) {
	s := Site{MaxInput: 1 << 20}
	some := []schedd.Credential{{Name: "a", Content: string(make([]byte, 1<<10))}}
	require.NoError(t, s.fitCredentials(some, 1024))
	require.ErrorContains(t, s.fitCredentials(some, 1025), "--max-input")
	require.NoError(t, Site{}.fitCredentials(some, 100_000))
}

func TestOnlyAnActiveRunHasCredentials(t *testing.T) {
	w := newWorld(t)
	_, err := w.CredentialsOf(context.Background(), "nobody", 1)
	require.ErrorIs(t, err, jobcredentials.ErrUnknownRun)
}
