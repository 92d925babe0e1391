package trial

import (
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
