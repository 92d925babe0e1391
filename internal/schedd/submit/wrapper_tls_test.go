package submit

import (
	"bytes"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/notify"
)

// Jobs bring htcd's own authority, and take a certificate of one that their node trusts as well: an Ingress may end
// TLS.
func TestWrapperTrustsHtcdsOwnAuthorityAndTheNodes(t *testing.T) {
	own, err := notify.LoadOwn(filepath.Join(t.TempDir(), "authority.pem"), "127.0.0.1", time.Now)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		ingress, trusted bool
		also             bool
		scheme           string
		events           int32
	}{
		"htcd itself": {false, false, true, "https", 1},
		"htcd itself, by the URL of earlier jobs":          {false, false, true, "http", 1},
		"an Ingress that the node trusts":                  {true, true, true, "https", 1},
		"an Ingress that nobody trusts":                    {true, false, true, "https", 0},
		"an Ingress that only the node trusts, not htcd's": {true, true, false, "https", 0},
	} {
		for _, client := range []string{"curl", "wget"} {
			t.Run(name+" "+client, func(t *testing.T) {
				t.Parallel()
				var posted atomic.Int32
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					posted.Add(1)
					w.WriteHeader(http.StatusNoContent)
				}))
				if c.ingress {
					server.StartTLS()
				} else {
					server.Listener = notify.Either(server.Listener, own.TLS())
					server.Start()
				}
				t.Cleanup(server.Close)
				_, port, err := net.SplitHostPort(server.Listener.Addr().String())
				require.NoError(t, err)
				d := (&receiver{Server: server}).description("exit 5")
				d.CallbackURL, d.CallbackCA, d.CallbackAlso, d.CallbackDeadline = c.scheme+"://127.0.0.1:"+port+"/cloudevents", own.Text(), c.also, 2*time.Second
				s := node(t, d, map[string]string{"apptainer": fakeApptainer, client: "", "sh": ""})
				cmd := s.command()
				if c.trusted {
					file := filepath.Join(t.TempDir(), "trusted.crt")
					require.NoError(
						t,
						os.WriteFile(
							file,
							pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
							0o600,
						),
					)
					cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+file)
				}
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				require.Error(t, cmd.Run())
				require.Equal(t, 5, cmd.ProcessState.ExitCode(), stderr.String())
				require.Equal(t, c.events, posted.Load(), stderr.String())
			})
		}
	}
}
