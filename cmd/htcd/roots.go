package main

import (
	"crypto/x509"
	"os"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustWithoutStore uses the CA certificates built into the program if the machine has none, as on some nodes. It is for
// short-lived commands: in htcd run they would occupy memory for good, and its image has certificates.
var trustWithoutStore = sync.OnceValue(func() error {
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return err
		}
		pool.AddCertWithConstraint(certificate, root.Constraint)
	}
	x509.SetFallbackRoots(pool)
	return nil
})

// alsoOwn returns the authorities by which jobs check the receiver's certificate if nobody has given one: the system's, and htcd's own once
// htcd has worked.
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
