package trial

import (
	"path/filepath"

	"github.com/stretchr/testify/require"
)

// ScratchWith is the directory of a running job in which its script has made a file of that name; empty if there is
// none.
func (b *Bench) ScratchWith(name string) string {
	b.T.Helper()
	for _, below := range []string{".", "scratch"} { // the latter on newer versions
		found, err := filepath.Glob(b.Lab.Path("condor", "execute", "dir_*", below, ".htcd", "job", name))
		require.NoError(b.T, err)
		if len(found) == 1 {
			return filepath.Dir(found[0])
		}
	}
	return ""
}
