package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintEndsAsTheJobsDid(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000.out"), []byte("out\n"), 0o600))
	require.Equal(t, 0, run("htcd", []string{"print", dir}, nil))
	require.Equal(t, 1, run("htcd", []string{"print", "--exit-code=1", dir}, nil))
	require.Equal(t, exitUsage, run("htcd", []string{"print"}, nil))
}
