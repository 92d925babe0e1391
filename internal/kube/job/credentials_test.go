package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
)

func TestOnlyAnActiveRunHasCredentials(t *testing.T) {
	w := newWorld(t)
	_, err := w.CredentialsOf(context.Background(), "nobody", 1)
	require.ErrorIs(t, err, jobcredentials.ErrUnknownRun)
}
