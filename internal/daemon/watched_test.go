package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

func TestADamagedLedgerIsPutAsideAndANewOneBegun(t *testing.T) {
	d := &daemon{o: Options{Data: t.TempDir()}, log: zerolog.Nop()}
	file := d.o.LedgerFile()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("no database, and never was one"), 0o600))
	book, err := d.openLedger(t.Context())
	require.NoError(t, err)
	require.NoError(t, book.Close())
	aside, err := filepath.Glob(file + ".damaged-*")
	require.NoError(t, err)
	require.Len(t, aside, 1)
	text, err := os.ReadFile(aside[0])
	require.NoError(t, err)
	require.Equal(t, "no database, and never was one", string(text))
}

func TestALedgerThatIsLostAtWorkEndsTheWork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "htcjobs.db")
	book, err := ledger.Open(t.Context(), file)
	require.NoError(t, err)
	w := watchLedger(book)
	own := errors.New("the caller's own")
	require.ErrorIs(t, w.Write(t.Context(), func(*ledger.Tx) error { return own }), own)
	require.NoError(t, w.verdict())

	require.NoError(t, os.Remove(file))
	require.ErrorIs(t, w.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("a") }), ledger.ErrLost)
	require.ErrorIs(t, w.wait(t.Context()), ledger.ErrLost)
	require.True(t, needsReexec(w.verdict()))
	require.NoError(t, book.Close())
}
