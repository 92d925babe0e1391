package notify

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the answers that came into testdata/*.http")

// The tokens of testdata.
const (
	runsToken    = "dGhlLXRva2VuLW9mLXRoZS1ydW4tcGh5c2ljcy16ZXI"
	anotherToken = "YW5vdGhlci10b2tlbi1vZi1hbm90aGVyLXJ1bi1hcHA"
)

// memory is a Recorder that knows the job 100.0 of physics/zero, whose token is
// runsToken, and the run physics/early, which is still being recorded.
type memory struct {
	mu   sync.Mutex
	took []string
}

func (m *memory) Record(_ context.Context, c Callback, tokenHash []byte) error {
	switch {
	case c.Name == "early":
		return errors.New("secret words of the ledger")
	case c.Namespace != "physics" || c.Name != "zero" || c.JobID != "100.0":
		return fmt.Errorf("wrapped: %w", ErrUnknownJob)
	case !Match(Hash(runsToken), tokenHash):
		return fmt.Errorf("wrapped: %w", ErrForbidden)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	took := fmt.Sprintf("%s/%s %s %d", c.Namespace, c.Name, c.JobID, c.Retcode)
	if c.Started {
		took += " started"
	}
	if c.Held {
		took += " held"
	}
	if c.Stderr != "" {
		took += fmt.Sprintf(" stderr %.60q (%d bytes)", c.Stderr, len(c.Stderr))
	}
	if n := c.Node; n != nil {
		took += fmt.Sprintf(" node %d, exit %d", n.Number, n.Exit)
	}
	m.took = append(m.took, took)
	return nil
}

// serve runs a server for the test and returns its address.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := NewServer(handler, zerolog.Nop())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return listener.Addr().String()
}

// Each file is a request as it stands on the wire (Content-Length added), a
// line ###, the status, and the answer's body or, after a 204, what the
// Recorder was given.
func TestRequests(t *testing.T) {
	files, err := filepath.Glob("testdata/*.http")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".http"), func(t *testing.T) {
			request, want := golden(t, file)
			m := &memory{}
			answer, body := exchange(t, serve(t, NewReceiver(m, Options{}, zerolog.Nop())), request)
			if answer.StatusCode == http.StatusNoContent {
				body = strings.Join(m.took, "\n")
			} else {
				require.Empty(t, m.took)
			}
			got := fmt.Sprintf("%d\n%s\n", answer.StatusCode, strings.TrimSpace(body))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(request+"\n###\n"+got), 0o600))
				return
			}
			require.Equal(t, want, got)
			require.Equal(t, answer.StatusCode == http.StatusServiceUnavailable, answer.Header.Get("Retry-After") != "")
			require.Equal(t, answer.StatusCode == http.StatusUnauthorized, answer.Header.Get("WWW-Authenticate") != "")
		})
	}
}

func golden(t testing.TB, file string) (request, answer string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	request, answer, found := strings.Cut(string(content), "\n###\n")
	require.True(t, found, file)
	return request, answer
}

// wire is a golden's request with the line ends and the length HTTP wants.
func wire(request string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	head = strings.TrimSpace(head)
	if !strings.Contains(head, "Content-Length:") && !strings.Contains(head, "Transfer-Encoding:") {
		head += "\nContent-Length: " + strconv.Itoa(len(body))
	}
	return strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body
}

func exchange(t *testing.T, address, request string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = io.WriteString(c, wire(request))
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer, string(body)
}

// FuzzDecode: whatever arrives, decode gives either an error or a callback that
// is sound and that our own sender could have sent.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.http")
	require.NoError(f, err)
	for _, file := range files {
		request, _ := golden(f, file)
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire(request))))
		require.NoError(f, err)
		body, _ := io.ReadAll(r.Body)
		f.Add(r.Header.Get("Content-Type"), r.Header.Get("ce-specversion"), r.Header.Get("ce-type"), body)
	}
	f.Fuzz(func(t *testing.T, contentType, specVersion, kind string, body []byte) {
		header := http.Header{"Ce-Source": {"s"}, "Ce-Id": {"1"}, "Content-Type": {contentType}}
		if specVersion != "" {
			header.Set("ce-specversion", specVersion)
			header.Set("ce-type", kind)
		}
		c, err := decode(header, body)
		if err != nil {
			return
		}
		require.NoError(t, c.check())
		again, err := encode(c, time.Unix(0, 0))
		require.NoError(t, err)
		same, err := decode(http.Header{"Content-Type": {"application/cloudevents+json"}}, again)
		require.NoError(t, err)
		require.Equal(t, c, same)
		require.False(t, bytes.ContainsAny([]byte(c.Namespace+c.Name+c.JobID), "\r\n /"))
	})
}
