package main

import (
	"crypto/x509"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustWithoutStore makes the CA certificates within the program count where the machine has none: nodes without exist.
// What asks for it comes and goes; in htcd run they would stay in memory for good, and its image has certificates.
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
