package output

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADeclaredPathMatchesAsInAShell(t *testing.T) {
	s, a := Store{Root: t.TempDir()}, Attempt{Namespace: "n", Name: "j", Number: 1}
	dir, err := s.ProcDir(a, 3)
	require.NoError(t, err)
	all := []string{
		"_condor_stdout",
		"a.root",
		"b.root",
		"a[1]",
		"a1",
		".hidden.root",
		"d/x",
		"d/.h",
		"d/e/f",
		"e/x",
		"line\nend.root",
		"a[b",
		"e/\xe4.png", // no UTF-8
	}
	for _, file := range all {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
	}
	require.NoError(t, os.Symlink("a.root", filepath.Join(dir, "link.root")))
	for pattern, want := range map[string][]string{
		"*.root":    {"a.root", "b.root", "line\nend.root"},
		"[!a].root": {"b.root"},
		"?.root":    {"a.root", "b.root"},
		"a[1]":      {"a[1]", "a1"},
		"a[b":       {"a[b"},
		"d":         {"d/x", "d/.h", "d/e/f"},
		"*/x":       {"d/x", "e/x"},
		"d/*":       {"d/x", "d/e/f"},
		"e/?.png":   {"e/\xe4.png"},
		"*": {
			"a.root", "b.root", "a[1]", "a1", "d/x", "d/.h", "d/e/f", "e/x", "line\nend.root", "a[b", "e/\xe4.png",
		},
		"none":         nil,
		"_condor_*":    nil,
		"a.root/more":  nil,
		"line*":        {"line\nend.root"},
		"d/e/f/g/h/i/": nil,
	} {
		files, err := s.Matching(t.Context(), a, "3", pattern, 100)
		require.NoError(t, err)
		require.ElementsMatch(t, want, files, pattern)
	}
	files, err := s.Matching(t.Context(), a, "3", "*", 3)
	require.NoError(t, err)
	require.Len(t, files, 3)
	_, err = s.Matching(t.Context(), a, "4", "*", 3)
	require.ErrorIs(t, err, os.ErrNotExist)
}
