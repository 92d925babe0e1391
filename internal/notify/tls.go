package notify

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// TLS is the server's TLS configuration with the certificate in two PEM files. They are checked at every handshake, so
// that a renewed certificate is used without a restart; while a new pair cannot be read, or its halves do not match
// (one of them is still being written), the last good one remains in use.
func TLS(certFile, keyFile string, log zerolog.Logger) (*tls.Config, error) {
	pair := &keyPair{certFile: certFile, keyFile: keyFile, log: log.With().Str("component", "notify").Logger()}
	if err := pair.reload(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get}, nil
}

type keyPair struct {
	certFile, keyFile string
	log               zerolog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    [2]version // of the files tried last, good or not
}

// version distinguishes two contents of a file. A mounted Secret changes by a link, so the size alone is not enough.
type version struct {
	changed time.Time
	size    int64
}

func (p *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.reload(); err != nil {
		p.log.Error().Err(err).Msg("certificate not reloaded; the last good one remains in use")
	}
	return p.current, nil
}

// reload reads the files if they are not those read last.
func (p *keyPair) reload() error {
	var now [2]version
	for i, file := range []string{p.certFile, p.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
		now[i] = version{info.ModTime(), info.Size()}
	}
	if now == p.seen {
		return nil
	}
	p.seen = now
	pair, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", p.certFile, p.keyFile, err)
	}
	p.current = &pair
	return nil
}
