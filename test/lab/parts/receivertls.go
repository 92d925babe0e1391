package parts

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"time"
)

// ReceiverCA is the file with the lab's authority, which signed the receiver's certificate.
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
	return &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}, nil
}

func receiverFile(w World, name string) string { return w.Lab.Path("htcd", "tls", name) }
