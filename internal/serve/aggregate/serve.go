package aggregate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	stdlog "log"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// Certificate identifies this process to the apiserver. Its key never leaves memory.
type Certificate struct {
	pair tls.Certificate
	// PEM is the certificate to trust.
	PEM []byte
}

// lifetime is longer than any process lives: each makes its own certificate.
const lifetime = 10 * 365 * 24 * time.Hour

// NewCertificate makes one for the Services of a namespace.
func NewCertificate(namespace string) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "htcd output"},
		// The apiserver uses a Service's name as the host name. Whatever the Service is called, it is in our namespace.
		DNSNames:              []string{"*." + namespace + ".svc"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return &Certificate{
		pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		PEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// Server holds the parts of Serve.
type Server struct {
	Certificate *Certificate
	FrontProxy  *FrontProxy
	Source      Source
	Shells      Shells
	Log         zerolog.Logger
	Uploads     Uploads
}

// Serve answers on the listener until ctx ends; answers in progress are then cut off, and clients try again.
func (s Server) Serve(ctx context.Context, listener net.Listener) error {
	handler := newHandler(s.Source, s.FrontProxy, s.Log)
	if s.Shells != nil {
		mux := http.NewServeMux()
		mux.Handle("/", handler)
		serveExec(mux, s.Shells, s.FrontProxy, s.Log)
		serveUploads(mux, s.Uploads, s.Log)
		handler = mux
	}
	server := &http.Server{
		Handler:           literal(handler),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ErrorLog:       stdlog.New(debug{s.Log}, "", 0),
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{s.Certificate.pair},
			ClientAuth: tls.RequireAnyClientCert, VerifyConnection: s.FrontProxy.verify,
			SessionTicketsDisabled: true, // every connection is checked
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	err := server.Close()
	<-served // http.ErrServerClosed, by Close
	return err
}

// debug receives messages about strangers' handshakes and broken connections.
type debug struct{ log zerolog.Logger }

func (d debug) Write(p []byte) (int, error) {
	d.log.Debug().Msg(string(p))
	return len(p), nil
}
