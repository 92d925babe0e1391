package notify

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestWhatAClientSaysCannotControlTheTerminalThatShowsTheLog(t *testing.T) {
	var log strings.Builder
	lines := zerolog.New(zerolog.ConsoleWriter{Out: &log, NoColor: true})
	receiver := NewReceiver(
		recorderFunc(func(context.Context, Callback, []byte) error { return nil }),
		Options{},
		lines,
	)
	token, _ := NewToken()
	request := httptest.NewRequest(http.MethodPost, Path, strings.NewReader("{}"))
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/cloudevents+json; \u202e\x1b[2J=a")
	receiver.ServeHTTP(httptest.NewRecorder(), request)
	server := NewServer(receiver, lines)
	_, err := io.WriteString(
		server.ErrorLog.Writer(),
		"http: TLS handshake error from 10.0.0.1: \x1b]0;title\a\u202eno\n",
	)
	require.NoError(t, err)
	require.Contains(t, log.String(), "callback refused")
	require.Contains(t, log.String(), "␛]0;title␇�no")
	require.NotContains(t, log.String(), "\x1b")
	require.NotContains(t, log.String(), "\u202e")
}
