package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALockedLedgerIsToldOfOnceAndWaitedForSomeMinutes(t *testing.T) {
	var told strings.Builder
	locked := waits(&told, "/data/htcjobs.db")
	require.NoError(t, locked(time.Second))
	require.NoError(t, locked(lockPatience))
	require.Equal(t, "somebody has locked /data/htcjobs.db: waiting, for 5m0s at most\n", told.String())
	require.ErrorContains(t, locked(lockPatience+time.Second), "somebody has kept it locked for 5m0s")
}
