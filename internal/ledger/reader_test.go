package ledger

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReaderReadsBesideTheWriterAndNeverWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	l, err := Open(t.Context(), path)
	require.NoError(t, err)
	defer l.Close()
	r, err := OpenReader(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, l.Write(t.Context(), func(tx *Tx) error {
		return tx.InsertRun(Run{UID: "u", Attempt: 1, State: Intent})
	}))
	require.NoError(t, r.Read(t.Context(), func(tx *Tx) error {
		_, err := tx.Run("u", 1)
		require.Error(t, tx.DeleteRuns("u"), "not even by mistake")
		return err
	}))
	require.Error(t, r.Write(t.Context(), func(*Tx) error { panic("run") }))
	require.NoError(t, r.Close())
}

func TestAReaderCreatesNothingAndBringsNothingUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	_, err := OpenReader(t.Context(), path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoFileExists(t, path)

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(
		t.Context(),
		`CREATE TABLE htcjobs (htcjobName varchar, jobId char(10), status integer, tempDir varchar)`,
	)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = OpenReader(t.Context(), path)
	require.ErrorContains(t, err, "older htcd")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
