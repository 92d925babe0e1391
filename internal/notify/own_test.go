package notify

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestAnAuthorityOfItsOwnIsKeptAndRenewed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tls", "authority.pem")
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return at }
	load := func() *Own {
		t.Helper()
		o, err := LoadOwn(file, "htcd.example.org", now)
		require.NoError(t, err)
		return o
	}
	trusts := func(text string, o *Own) {
		t.Helper()
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM([]byte(text)))
		server, err := o.certificate()
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(server.Certificate[0])
		require.NoError(t, err)
		_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "htcd.example.org", CurrentTime: at})
		require.NoError(t, err)
	}
	first := load()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Equal(t, first.Text(), load().Text(), "after a restart")
	trusts(first.Text(), first)
	was, err := first.certificate()
	require.NoError(t, err)
	at = at.Add(serverLasts - serverLeft)
	is, err := first.certificate()
	require.NoError(t, err)
	require.NotEqual(t, was.Certificate, is.Certificate, "the server's is replaced while htcd works")
	trusts(first.Text(), first)

	at = at.Add(11 * 365 * 24 * time.Hour)
	renewed := load()
	require.NotEqual(t, first.Text(), renewed.Text())
	require.Equal(t, renewed.Text(), load().Text())
	trusts(renewed.Text(), renewed)
	trusts(first.Text(), renewed) // jobs that were sent before
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1)

	require.NoError(t, os.WriteFile(file, []byte("half a k"), 0o600))
	_, err = LoadOwn(file, "htcd.example.org", now)
	require.ErrorContains(t, err, "does not have a key")
}

func TestOnePortServesHTTPSAndHTTP(t *testing.T) {
	o, err := LoadOwn(filepath.Join(t.TempDir(), "authority.pem"), "127.0.0.1", time.Now)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }),
		zerolog.Nop(),
	)
	served := make(chan error, 1)
	go func() { served <- server.Serve(Either(listener, o.TLS())) }()
	silent, err := net.Dial("tcp", listener.Addr().String()) // sends nothing; other connections are served meanwhile
	require.NoError(t, err)
	defer silent.Close()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(o.Text())))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for _, scheme := range []string{"https", "http"} {
		for range 2 { // the second on the same connection
			response, err := client.Post(scheme+"://"+listener.Addr().String(), "text/plain", http.NoBody)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, response.StatusCode)
			require.NoError(t, response.Body.Close())
		}
	}
	client.CloseIdleConnections()
	require.NoError(t, silent.Close())
	require.NoError(t, server.Shutdown(t.Context()))
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}
