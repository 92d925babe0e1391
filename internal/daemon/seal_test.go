package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALedgerThatIsPutBackIsNotTheOneThatWasClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	require.Empty(t, sealOf(path), "there is none")
	require.NoError(t, os.WriteFile(path, []byte("ledger"), 0o600))
	seal := sealOf(path)
	require.NotEmpty(t, seal)
	require.Equal(t, seal, sealOf(path))

	require.NoError(t, os.WriteFile(path+"-wal", []byte("more"), 0o600))
	require.Empty(t, sealOf(path), "it was not closed")
	require.NoError(t, os.Truncate(path+"-wal", 0))
	require.Equal(t, seal, sealOf(path))

	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	require.NotEqual(t, seal, sealOf(path), "a copy of another time")
}
