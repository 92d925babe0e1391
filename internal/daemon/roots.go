package daemon

import (
	"crypto/x509"
	"os"
)

// alsoOwn returns the authorities by which jobs check the receiver's certificate if nobody has given one: the system's,
// and htcd's own once htcd has worked.
func (o *Options) alsoOwn() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if own, err := os.ReadFile(o.ownFile()); err == nil {
		pool.AppendCertsFromPEM(own)
	}
	return pool
}
