package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABackupOfALedgerAtWorkIsConsistent(t *testing.T) {
	l, path := openTemp(t)
	to := filepath.Join(t.TempDir(), "copy 100% #1.db")
	require.NoError(t, os.WriteFile(to, []byte("an earlier one"), 0o600))
	insert(t, l, testRun("first"))

	ctx, stop := context.WithCancel(t.Context())
	written := make(chan error)
	go func() { // a run and its procs in one transaction
		for n := 0; ; n++ {
			r := testRun(fmt.Sprintf("u%d", n))
			r.Cluster = 200 + n
			err := l.Write(ctx, func(tx *Tx) error { return errors.Join(tx.InsertRun(r), tx.InsertProcs(r, r.Procs)) })
			if err != nil {
				written <- err
				return
			}
		}
	}()
	for range 5 {
		require.NoError(t, Backup(t.Context(), path, to, waits))
	}
	stop()
	require.ErrorIs(t, <-written, context.Canceled)

	copied := shell(t, to)
	var runs, procs int
	require.NoError(t, copied.QueryRow(`SELECT count(*), (SELECT count(*) FROM htcjobs) FROM runs`).Scan(&runs, &procs))
	require.Positive(t, runs)
	require.Equal(t, 3*runs, procs)
	r, err := OpenReader(t.Context(), to)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	left, err := filepath.Glob(filepath.Join(filepath.Dir(to), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{to}, left)
}

func TestABackupThatFailsLeavesTheOneBefore(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("u"))
	to := filepath.Join(t.TempDir(), "htcjobs.db")
	require.NoError(t, Backup(t.Context(), path, to, waits))
	before, err := os.ReadFile(to)
	require.NoError(t, err)

	damaged := filepath.Join(t.TempDir(), "damaged.db")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	copy(content[len(content)/2:], make([]byte, len(content)/2))
	require.NoError(t, os.WriteFile(damaged, content, 0o600))
	require.ErrorIs(t, Backup(t.Context(), damaged, to, waits), ErrCorrupt)
	require.ErrorIs(t, Backup(t.Context(), filepath.Join(t.TempDir(), "absent"), to, waits), os.ErrNotExist)
	require.ErrorContains(t, Backup(t.Context(), path, path, waits), "could replace")
	require.ErrorContains(t, Backup(t.Context(), path, filepath.Dir(to), waits), "could replace")

	after, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, before, after)
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// waits is a Locked that waits for as long as it takes.
func waits(time.Duration) error { return nil }

func TestABackupWaitsForACommitAsLongAsItMay(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("u"))
	other := shell(t, path)
	other.SetMaxOpenConns(1)
	_, err := other.Exec(`BEGIN EXCLUSIVE`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := filepath.Join(t.TempDir(), "htcjobs.db")
	require.Error(t, Backup(ctx, path, to, waits))
	enough := errors.New("waited enough")
	require.ErrorIs(t, Backup(t.Context(), path, to, func(time.Duration) error { return enough }), enough)
	require.NoFileExists(t, to)
	told := 0
	require.NoError(t, Backup(t.Context(), path, to, func(waited time.Duration) error {
		require.Positive(t, waited)
		told++
		_, err := other.Exec(`ROLLBACK`)
		return err
	}))
	require.Equal(t, 1, told)
}
