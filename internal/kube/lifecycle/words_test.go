package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneTakesTheSingular(t *testing.T) {
	require.Equal(t, "0 jobs wait", waits(0))
	require.Equal(t, "1 job waits", waits(1))
	require.Equal(t, "2 jobs wait", waits(2))
	require.Equal(t, "1 job is", IsOrAre(1, "job"))
	require.Equal(t, "1 other job was", wasOrWere(1, "other job"))
	require.Equal(t, "1 second has passed since the submission (spec)", DeadlinePassed(new(int64(1)), "spec"))
	require.Equal(t, "2 seconds have passed since the submission (spec)", DeadlinePassed(new(int64(2)), "spec"))
}
