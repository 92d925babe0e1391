package control

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/job"
)

func TestTheControlSocketIsPrivateAndTakesTheOnlyPlaceOfAnotherSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own", "control.sock")
	first, err := Listen(path)
	require.NoError(t, err)
	for name, want := range map[string]os.FileMode{path: 0o600 | os.ModeSocket,
		filepath.Dir(path): 0o700 | os.ModeDir} {
		info, err := os.Lstat(name)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode(), name)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as when it is killed
	require.NoError(t, first.Close())
	_, err = Reconcile(t.Context(), path, job.ReconcileOptions{})
	require.ErrorIs(t, err, ErrNoDaemon)

	second, err := Listen(path)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.NoError(t, os.WriteFile(path, []byte("a file"), 0o600))
	_, err = Listen(path)
	require.ErrorContains(t, err, "no socket")
}
