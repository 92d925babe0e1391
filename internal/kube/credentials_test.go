package kube

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/jobcredentials"
)

func TestOnlyAnActiveRunHasCredentials(t *testing.T) {
	w := newWorld(t)
	_, err := w.CredentialsOf(context.Background(), "nobody", 1)
	require.ErrorIs(t, err, jobcredentials.ErrUnknownRun)
}
