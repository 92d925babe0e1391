package output

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheOutputOfSomeProcsIsCarriedOver(t *testing.T) {
	s := Store{Root: t.TempDir()}
	first, second := Attempt{"ns", "a", 1}, Attempt{"ns", "a", 2}
	require.NoError(t, s.Carry(first, second, func(int) bool { return true }), "there is none")
	for name, text := range map[string]string{"0/x": "0", "0/sub/y": "y", "0/d\xe9/f": "f", "1/x": "1", "12/x": "12"} {
		file := filepath.Join(s.Root, "ns/a/1", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for range 2 {
		require.NoError(t, s.Carry(first, second, func(proc int) bool { return proc != 1 }))
		procs, err := s.Procs(second)
		require.NoError(t, err)
		require.Equal(t, []int{0, 12}, procs)
	}
	require.NoError(t, s.DropAttempt(first))
	require.NoError(t, s.Sweep(true))
	for name, want := range map[string]string{"sub/y": "y", "d\xe9/f": "f"} {
		text, err := os.ReadFile(filepath.Join(s.Root, "ns/a/2/0", name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoError(t, os.Symlink("/", filepath.Join(s.Root, "ns/a/2/13"))) // it cannot be linked
	require.Error(t, s.Carry(second, Attempt{"ns", "a", 3}, func(int) bool { return true }))
	left, err := os.ReadDir(filepath.Join(s.Root, incoming))
	require.NoError(t, err)
	require.Empty(t, left)
}
