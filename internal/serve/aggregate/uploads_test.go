package aggregate

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/inputs/uploads"
	"htc.cern.ch/htcd/internal/output"
)

func TestAFileIsUploadedInPieces(t *testing.T) {
	room := output.Room{Bytes: 1 << 40, Files: 1 << 30}
	store := &uploads.Store{
		Root: t.TempDir(), Now: time.Now,
		Shares: &output.Shares{
			Volume:  func() (free, size output.Room, err error) { return room, room, nil },
			Reserve: func(output.Room) output.Room { return output.Room{} }, Now: time.Now,
		},
		Users: func(string, string) ([]string, error) { return nil, nil },
	}
	mux := http.NewServeMux()
	serveUploads(mux, store, zerolog.Nop())
	server := httptest.NewServer(mux)
	defer server.Close()
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(
			t.Context(),
			method,
			server.URL+"/apis/"+GroupVersion.String()+"/namespaces/ns/uploads"+path,
			strings.NewReader(body),
		)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text)
	}
	at := "/" + fmt.Sprintf("%s%x", uploads.Prefix, sha256.Sum256([]byte("content")))
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"PATCH", at, "", 400, "want one parameter"},
		{"PATCH", at + "?size=7&offset=0", "", 400, "want one parameter"},
		{"PATCH", at + "?offset=0&part=1", "content", 400, "want one parameter"},
		{"PATCH", at + "?size=1e9", "", 400, `size: \"1e9\": want a number of bytes`},
		{"PATCH", at + "?offset=-1", "", 400, "want a number of bytes"},
		{"PATCH", at + "?size=99999999999999999999", "", 400, "want a number of bytes"},
		{"PATCH", "/sha256:x?size=7", "", 422, "64 digits"},
		{"PATCH", at + "?offset=0", "content", 404, "was not begun"},
		{"PATCH", at + "?size=7", "", 200, `"offset":0,"whole":false`},
		{"PATCH", at + "?offset=0", "con", 200, `"offset":3,"whole":false`},
		{"PATCH", at + "?offset=1", "ontent", 409, "go on there, and not at 1"},
		{"PATCH", at + "?size=7", "", 200, `"offset":3,"whole":false`},
		{"PATCH", at + "?offset=3", "tent", 200, `"offset":7,"whole":true`},
		{"PATCH", at + "?offset=3", "tent", 200, `"whole":true`},
		{"GET", "", "", 200, `"size":7,"offset":7,"whole":true`},
		{"GET", at, "", 405, ""},
		{"DELETE", at, "", 204, ""},
		{"DELETE", at, "", 404, "there is no upload"},
	} {
		code, text := ask(c.method, c.path, c.body)
		require.Equal(t, c.code, code, "%s %s: %s", c.method, c.path, text)
		require.Contains(t, text, c.says)
	}
}
