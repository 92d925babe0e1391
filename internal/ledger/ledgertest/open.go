package ledgertest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
)

// Open opens a new ledger, which is closed when the test ends.
func Open(t testing.TB) *ledger.Ledger {
	t.Helper()
	book, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "htcjobs.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	return book
}
