package parts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// FrontProxyName is the name in the certificate that identifies the apiserver to servers that it forwards requests to.
const FrontProxyName = "front-proxy-client"

// frontProxy makes the certificate of the apiserver's front proxy, with its own authority, and returns the flags that
// make the apiserver use it and publish it in the ConfigMap extension-apiserver-authentication. The authority's key
// stays in dir, for tests that need another certificate from it.
func frontProxy(dir string) (flags []string, err error) {
	at := func(name string) string { return filepath.Join(dir, name) }
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "front-proxy-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(10, 0, 0),
	}
	key, err := certify(at("front-proxy-ca"), authority, authority, nil)
	if err != nil {
		return nil, err
	}
	client := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: FrontProxyName},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageClientAuth,
		},
		NotBefore: authority.NotBefore,
		NotAfter:  authority.NotAfter,
	}
	if _, err := certify(at("front-proxy-client"), client, authority, key); err != nil {
		return nil, err
	}
	return []string{
		"--requestheader-client-ca-file=" + at("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + FrontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + at("front-proxy-client.crt"),
		"--proxy-client-key-file=" + at("front-proxy-client.key"),
	}, nil
}

// certify writes a key and its certificate, FILE.key and FILE.crt. Without an issuer's key it is signed by its own.
func certify(file string, template, issuer *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = key
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), by)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(
		file+".key",
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		0o600,
	); err != nil {
		return nil, err
	}
	return key, os.WriteFile(
		file+".crt",
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		0o644,
	)
}
