package program

import (
	"crypto/x509"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustWithoutStore uses the CA certificates built into the program if the machine has none, as on some nodes. It is
// for short-lived commands: in htcd run they would occupy memory for good, and its image has certificates.
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
