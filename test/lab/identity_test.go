package lab_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
)

func TestALabThatAMachineTookWithItIsNotRunning(t *testing.T) {
	l, err := lab.Open(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(l.Path("run"), 0o755))
	started, err := lab.StartTime(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, l.SetIdentity(lab.Identity{Init: os.Getpid(), Started: started}))
	_, err = l.Identity()
	require.NoError(t, err)

	require.NoError(t, l.SetIdentity(lab.Identity{Init: os.Getpid(), Started: started + "0"}))
	_, err = l.Identity()
	require.ErrorIs(t, err, lab.ErrNotRunning, "the pid is another process's now")
	for _, text := range []string{"", "\x00\x00\x00", `{"init": 1`} {
		require.NoError(t, os.WriteFile(l.Path("run", "lab.json"), []byte(text), 0o644))
		_, err = l.Identity()
		require.ErrorIs(t, err, lab.ErrNotRunning, "%q", text)
	}
}
