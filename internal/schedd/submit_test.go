package schedd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/submit"
)

// The spool's limits follow the inputs: a shared file is sent for every proc.
func TestTheTimeToSpoolInputs(t *testing.T) {
	dir := t.TempDir()
	require.Zero(t, spoolTime(dir, 3))
	for _, name := range []string{"shared/a", "0/b"} {
		file := filepath.Join(dir, submit.InputsDir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o600))
	}
	require.Equal(t, 4*spoolTime(dir, 0), spoolTime(dir, 3))
}
