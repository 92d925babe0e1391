package notify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// How long certificates last, and how long before its end one is replaced. Jobs that are active when the authority's is
// replaced have the old one, and check the new ones by it, since the key stays. Nodes' clocks may be behind.
const (
	authorityLasts = 20 * 365 * 24 * time.Hour
	authorityLeft  = 10 * 365 * 24 * time.Hour
	serverLasts    = 90 * 24 * time.Hour
	serverLeft     = 30 * 24 * time.Hour
	clockBehind    = 24 * time.Hour
)

// Own is an authority of htcd's own, for the receiver's certificate where nobody has given one. Its certificate travels
// with every job.
type Own struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	host string
	now  func() time.Time

	mu     sync.Mutex
	server *tls.Certificate
	until  time.Time
}

// LoadOwn reads the authority from a file, and makes it if there is none. One that cannot be read is an error: with
// another, jobs that are active could not report their ends. host is where jobs reach the receiver.
func LoadOwn(file, host string, now func() time.Time) (*Own, error) {
	o := &Own{host: host, now: now}
	content, err := os.ReadFile(file) // #nosec G304 -- on htcd's own volume
	if errors.Is(err, fs.ErrNotExist) {
		o.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else if err == nil {
		err = o.parse(content)
	}
	if err != nil {
		return nil, fmt.Errorf("htcd's own authority, %s: %w", file, err)
	}
	if o.cert != nil && o.cert.NotAfter.Sub(now()) > authorityLeft {
		return o, nil
	}
	return o, o.renew(file)
}

func (o *Own) parse(content []byte) (err error) {
	for block, rest := pem.Decode(content); block != nil && err == nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "EC PRIVATE KEY":
			o.key, err = x509.ParseECPrivateKey(block.Bytes)
		case "CERTIFICATE":
			o.cert, err = x509.ParseCertificate(block.Bytes)
		}
	}
	if err == nil && (o.key == nil || o.cert == nil || !o.key.PublicKey.Equal(o.cert.PublicKey)) {
		err = errors.New("the file does not have a key and its certificate")
	}
	return err
}

// renew makes the certificate and writes the file, as a whole or not at all.
func (o *Own) renew(file string) error {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(o.now().UnixNano()), Subject: pkix.Name{CommonName: "htcd, for callbacks"},
		NotBefore: o.now().Add(-clockBehind), NotAfter: o.now().Add(authorityLasts),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &o.key.PublicKey, o.key)
	if err != nil {
		return err
	}
	if o.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	key, err := x509.MarshalECPrivateKey(o.key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	written, err := os.CreateTemp(filepath.Dir(file), "authority-*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(written.Name()) }() // unless it has its name by then
	_, err = written.WriteString(string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})) + o.Text())
	if err = errors.Join(err, written.Sync(), written.Close()); err != nil {
		return err
	}
	return os.Rename(written.Name(), file)
}

// Text returns the authority's certificate in PEM form.
func (o *Own) Text() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.cert.Raw}))
}

// TLS is the server's configuration. Its certificate is made when it is first needed, and replaced in time.
func (o *Own) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.certificate() },
	}
}

func (o *Own) certificate() (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.server != nil && o.until.Sub(o.now()) > serverLeft {
		return o.server, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	until := o.now().Add(serverLasts)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			o.now().UnixNano(),
		), Subject: pkix.Name{CommonName: "htcd"}, NotBefore: o.now().Add(-clockBehind), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(o.host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{o.host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, o.cert, &key.PublicKey, o.key)
	if err != nil {
		return nil, err
	}
	o.server, o.until = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, until
	return o.server, nil
}
