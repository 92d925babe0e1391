// Package ledgertest opens ledgers for tests, and damages them.
package ledgertest

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Refuse has every change of the rows of a run's jobs (htcjobs) or nodes (nodes) refused in an open ledger, as a fault
// in them would, until mend is called.
func Refuse(t *testing.T, path, table, uid string) (mend func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(60000)") // the ledger may be writing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	do := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	do(fmt.Sprintf("CREATE TRIGGER refused BEFORE UPDATE ON %s WHEN (SELECT uid FROM runs WHERE id = OLD.run) = '%s' "+
		"BEGIN SELECT RAISE(ABORT, 'the rows of %s are faulty'); END", table, uid, uid))
	return func() { do("DROP TRIGGER refused") }
}
