package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestBackupKeepsTheLatestCopiesAndNothingElseOfThem(t *testing.T) {
	data, dir := t.TempDir(), filepath.Join(t.TempDir(), "of[this]*")
	l, err := ledger.Open(t.Context(), filepath.Join(data, "sqlite", "htcjobs.db"))
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, age := range map[string]time.Duration{
		"htcjobs-20260101T000000Z.db": 0, "htcjobs-20260102T000000Z.db": 0, "htcjobs-20260101T000000Z.db.123.part": 25 * time.Hour,
		"htcjobs-20260103T000000Z.db.4.part": time.Hour, "htcjobs.db": 0, "mine": 0,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	require.Equal(t, 0, run("htcd", []string{"backup", dir, "--keep", "2"}, []string{"HTCD_DATA=" + data}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Len(t, names, 5)
	require.Subset(
		t,
		names,
		[]string{"htcjobs-20260102T000000Z.db", "htcjobs-20260103T000000Z.db.4.part", "htcjobs.db", "mine"},
	)

	file := filepath.Join(data, "copy")
	require.Equal(t, exitUsage, run("htcd", []string{"backup", file, "--keep", "1"}, []string{"HTCD_DATA=" + data}))
	require.Equal(t, exitUsage, run("htcd", []string{"backup", file, "--keep=-1"}, []string{"HTCD_DATA=" + data}))
	require.Equal(t, exitUsage, run("htcd", []string{"backup"}, []string{"HTCD_DATA=" + data}))
	require.Equal(t, exitFailure, run("htcd", []string{"backup", file, "--ledger", "/nonexistent"}, nil))
	require.NoFileExists(t, file)
	require.Equal(t, 0, run("htcd", []string{"backup", file, "--data", data}, nil))
	require.FileExists(t, file)
}

func TestACopyStaysAlsoIfTheClockWasAheadBefore(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	l, err := ledger.Open(t.Context(), filepath.Join(data, "sqlite", "htcjobs.db"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for _, name := range []string{"htcjobs-20200101T000000Z.db", "htcjobs-29990101T000000Z.db", "htcjobs-29990102T000000Z.db"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	environ := []string{"HTCD_DATA=" + data}
	require.Equal(t, exitFailure, run("htcd", []string{"restore", dir}, environ), "which is the latest is not known")
	require.Equal(t, 0, run("htcd", []string{"backup", dir, "--keep", "2"}, environ))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "htcjobs-20200101T000000Z.db", entries[0].Name())
	require.Equal(t, 0, run("htcd", []string{"restore", filepath.Join(dir, entries[1].Name())}, environ))
	require.Equal(t, 0, run("htcd", []string{"restore", dir}, environ))
}

func TestRestoreTakesTheLatestCopy(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	path := filepath.Join(data, "sqlite", "htcjobs.db")
	l, err := ledger.Open(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	environ := []string{"HTCD_DATA=" + data}
	require.Equal(t, exitFailure, run("htcd", []string{"restore", dir}, environ), "there is none")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "htcjobs-20200101T000000Z.db"), nil, 0o600))
	require.Equal(t, 0, run("htcd", []string{"backup", dir}, environ))
	require.NoError(t, os.Remove(path))
	require.Equal(t, 0, run("htcd", []string{"restore", dir}, environ))
	r, err := ledger.OpenReader(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(
		t,
		exitFailure,
		run("htcd", []string{"restore", filepath.Join(dir, "htcjobs-20200101T000000Z.db")}, environ),
	)
	require.Equal(t, exitUsage, run("htcd", []string{"restore"}, environ))
}
