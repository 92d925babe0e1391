package private

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADirectoryIsItsOwnersAloneAndGoesWithIt(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "tickets")
	d, err := Make(parent)
	require.NoError(t, err)
	for _, dir := range []string{parent, d.Path("")} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o700, info.Mode())
	}
	require.NoError(t, os.WriteFile(d.Path("secret"), nil, 0o600))
	require.NoError(t, d.Remove())
	require.NoDirExists(t, d.Path(""))
}

func TestDirectoriesOfTheDeadAreRemovedAndThoseOfTheLivingKept(t *testing.T) {
	parent := t.TempDir()
	dead := filepath.Join(parent, "keeper-1")
	require.NoError(t, os.Mkdir(dead, 0o700))
	var all sync.Map
	var making sync.WaitGroup
	for range 20 {
		making.Go(func() {
			d, err := Make(parent)
			require.NoError(t, err)
			all.Store(d, nil)
		})
	}
	making.Wait()
	require.NoDirExists(t, dead)
	all.Range(func(d, _ any) bool {
		require.DirExists(t, d.(*Dir).Path(""))
		require.NoError(t, d.(*Dir).Remove())
		return true
	})
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, left)
}
