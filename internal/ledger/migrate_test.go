package ledger

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file knows only how many steps it has taken: one that came in between would be taken for one that it has.
func TestMigrationsAreNumberedInTheOrderInWhichTheyCame(t *testing.T) {
	names, err := fs.Glob(migrations, "migration/*.sql")
	require.NoError(t, err)
	for i, name := range names {
		require.Regexp(t, fmt.Sprintf(`^migration/%04d_[a-z_]+\.sql$`, i+1), name, "the next number is %04d", len(names))
	}
}
