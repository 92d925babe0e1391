package schedd

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTailTellsAJobWithoutANodeFromOneThatCannotBeAsked(t *testing.T) {
	for says, none := range map[string]bool{
		"Job 289.0 does not support remote access.": true,
		"Failed to connect to starter":              false,
	} {
		client := tools(t, time.Minute, map[string]string{"condor_tail": "echo '" + says + "' >&2; exit 1"})
		err := client.Tail(t.Context(), Identity{}, Tail{Cluster: 289, MaxBytes: 1, Timeout: time.Minute}, io.Discard)
		if none {
			require.ErrorIs(t, err, ErrNoNode)
		} else {
			require.ErrorContains(t, err, says)
		}
	}
}
