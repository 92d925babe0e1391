package parts

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// ReceiverCertificate makes the certificate of htcd's receiver, and the authority that jobs and tests recognise it by.
func ReceiverCertificate(w World) error {
	dir := filepath.Dir(receiverFile(w, "ca.crt"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "receiver-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	key, err := certify(receiverFile(w, "ca"), authority, authority, nil)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "htcd"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
	}
	if _, err := certify(receiverFile(w, "receiver"), server, authority, key); err != nil {
		return err
	}
	uid, gid, err := Account("htcd")
	if err != nil {
		return err
	}
	return os.Chown(receiverFile(w, "receiver.key"), int(uid), int(gid))
}

// ReceiverCA is the file with the authority of the receiver's certificate.
func ReceiverCA(w World) string { return receiverFile(w, "ca.crt") }

// ReceiverClient is an HTTP client that trusts this authority alone.
func ReceiverClient(w World) (*http.Client, error) {
	text, err := os.ReadFile(ReceiverCA(w))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New(ReceiverCA(w) + " holds no certificate")
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}, nil
}

func receiverFile(w World, name string) string { return w.Lab.Path("htcd", "tls", name) }
