package notify

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAuthorities(t *testing.T) {
	server := httptest.NewTLSServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
	)
	t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "ca")
	for content, says := range map[string]string{
		"": "no certificate",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": file,
		string(bytes.Repeat(certificate, 100)):                           "keep only the authority",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, _, err := Authorities(file)
		require.ErrorContains(t, err, says)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("a key")})
	require.NoError(
		t,
		os.WriteFile(file, append([]byte("a comment: 'quoted'\n"), append(key, certificate...)...), 0o600),
	)
	text, roots, err := Authorities(file)
	require.NoError(t, err)
	require.Equal(t, string(certificate), text, "nothing but certificates")
	require.NotNil(t, roots)

	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("tok"), 0o600))
	o := SendOptions{
		URL:       server.URL,
		TokenFile: token,
		Callback:  Callback{Name: "zero", Namespace: "default", JobID: "1.0"},
		Deadline:  time.Second,
	}
	require.ErrorContains(t, Send(t.Context(), o), "certificate")
	o.CAFile = file
	require.NoError(t, Send(t.Context(), o))
}
