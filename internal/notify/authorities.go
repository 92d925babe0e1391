package notify

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
)

// maxAuthorities bounds the text that Authorities returns: it travels with every job.
const maxAuthorities = 64 << 10

// Roots reads a file of authorities of any size, such as a system's. What is none that Go takes is passed over.
func Roots(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file) // #nosec G304 -- named by htcd in a job
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return roots, nil
}

// Authorities reads the certificates in a PEM file. The text has them alone, without comments or keys.
func Authorities(file string) (text string, roots *x509.CertPool, err error) {
	content, err := os.ReadFile(file) // #nosec G304 -- named by the administrator, or by htcd in a job
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	roots = x509.NewCertPool()
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", file, err)
		}
		roots.AddCert(certificate)
		if err := pem.Encode(&b, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return "", nil, err
		}
	}
	switch {
	case b.Len() == 0:
		return "", nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	case b.Len() > maxAuthorities:
		return "", nil, fmt.Errorf(
			"%s has %d bytes of certificates, which is more than %d: keep only the authority of the receiver's certificate",
			file,
			b.Len(),
			maxAuthorities,
		)
	}
	return b.String(), roots, nil
}
