package tool

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAConfinedToolWritesOnlyWhereItMay(t *testing.T) {
	if !Confined() {
		t.Log("this kernel has no Landlock: a tool writes wherever its account may")
		return
	}
	bin, mine, other := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "ledger"), []byte("whole"), 0o600))
	require.NoError(t, os.Symlink(other, filepath.Join(mine, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "writer"), []byte(`#!/bin/sh
echo a > `+mine+`/a && mkdir `+mine+`/d && echo b > `+mine+`/d/b && cat `+other+`/ledger > /dev/null || exit 1
echo x > `+other+`/ledger && exit 2
echo x > `+other+`/new && exit 3
echo x > `+mine+`/link/new && exit 4
rm -f `+other+`/ledger && exit 5
mv `+other+`/ledger `+mine+`/ledger && exit 6
true > `+other+`/ledger && exit 7
exit 0
`), 0o700))
	require.NoError(
		t,
		Run(
			t.Context(),
			Command{
				Name:    "writer",
				BinDir:  bin,
				Timeout: 20 * time.Second,
				Writes:  []string{mine, "/dev/null", "/nonexistent"},
			},
		),
	)
	text, err := os.ReadFile(filepath.Join(other, "ledger"))
	require.NoError(t, err)
	require.Equal(t, "whole", string(text))
	require.FileExists(t, filepath.Join(mine, "d", "b"))
	require.NoError(t, os.WriteFile(filepath.Join(other, "ours"), nil, 0o600), "this process is as free as before")
}
