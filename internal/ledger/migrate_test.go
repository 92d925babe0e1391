package ledger

import (
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file knows only how many steps it has taken: one that came in between would be taken for one that it has.
func TestMigrationsAreNumberedInTheOrderInWhichTheyCame(t *testing.T) {
	names, err := fs.Glob(migrations, "migration/*.sql")
	require.NoError(t, err)
	for i, name := range names {
		require.Regexp(
			t,
			fmt.Sprintf(`^migration/%04d_[a-z_]+\.sql$`, i+1),
			name,
			"the next number is %04d",
			len(names),
		)
	}
}

func TestAFileOfWhichOneStepFailsStaysAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "htcjobs.db")
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.Exec(`CREATE TABLE nodes (other)`)
	require.NoError(t, err)
	_, err = Open(t.Context(), path)
	require.ErrorContains(t, err, "migration/0017_nodes.sql")
	var tables, version int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE type = 'table'`).Scan(&tables))
	require.NoError(t, db.QueryRow(`PRAGMA user_version`).Scan(&version))
	require.Equal(t, []int{1, 0}, []int{tables, version})
}
