package trial

import (
	"cmp"
	"os"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/cache"
)

// Cache returns what real parts are kept in, and the clone whose modules they are built from.
func (b *Bench) Cache() (c *cache.Cache, clone string, err error) {
	b.T.Helper()
	if clone, err = lab.CloneAround("."); err != nil {
		return nil, "", err
	}
	c, err = cache.Default(b.T.Logf)
	return c, clone, err
}

// PeerRelease is the release of a foreign project that is tested with: newest, or previous if PEER in the environment
// says so. It is the directory of test/parts/PROJECT whose go.mod names it.
func PeerRelease() string { return cmp.Or(os.Getenv("PEER"), "newest") }
