package sending

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/output"
)

// full has no room for anything that is written.
type full struct{ ledger.Store }

func (l full) Write(ctx context.Context, fn func(*ledger.Tx) error) error {
	return l.Store.Write(ctx, func(tx *ledger.Tx) error { return errors.Join(fn(tx), ledger.ErrFull) })
}

// Deleting objects is what users can do about a full volume, which the ledger may lie on, too.
func TestTheOutputOfADeletedObjectMakesRoomForTheLedger(t *testing.T) {
	book, store := ledgertest.Open(t), output.Store{Root: t.TempDir()}
	s := Sender{
		Ledger: book, Output: store, Staging: t.TempDir(), Log: zerolog.Nop(),
		Tries: &recovery.Tries{}, Absences: &recovery.Absences{},
	}
	run := ledger.Run{UID: "u", Attempt: 1, Namespace: "physics", Name: "large", State: ledger.Submitted}
	require.NoError(t, book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.InsertRun(run) }))
	dir, err := store.ProcDir(output.Attempt{Namespace: "physics", Name: "large", Number: 1}, 0)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))

	s.Ledger = full{book}
	require.ErrorIs(t, s.Forget(t.Context(), "physics", "large", "u"), ledger.ErrFull)
	left, err := filepath.Glob(filepath.Join(store.Root, ".incoming", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, dir)

	s.Ledger = book
	require.NoError(t, s.Forget(t.Context(), "physics", "large", "u"))
	require.NoError(t, book.Read(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Run("u", 1)
		require.ErrorIs(t, err, ledger.ErrNotFound)
		return nil
	}))
}
