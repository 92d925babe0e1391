package notify

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// recorderFunc is a Recorder made of a function.
type recorderFunc func(context.Context, Callback, []byte) error

func (f recorderFunc) Record(ctx context.Context, c Callback, hash []byte) error {
	return f(ctx, c, hash)
}

func TestTheAnswerWaitsForTheRecorder(t *testing.T) {
	begun, durable := make(chan struct{}), make(chan struct{})
	address := serve(t, NewReceiver(recorderFunc(func(context.Context, Callback, []byte) error {
		close(begun)
		<-durable
		return nil
	}), Options{}, zerolog.Nop()))
	request, _ := golden(t, "testdata/structured.http")
	status := make(chan int)
	go func() {
		answer, _ := exchange(t, address, request)
		status <- answer.StatusCode
	}()
	<-begun
	select {
	case <-status:
		t.Fatal("answered before the event was durable")
	default:
	}
	close(durable)
	require.Equal(t, http.StatusNoContent, <-status)
}

func TestTooManyAtOnceAreAskedToComeAgain(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	address := serve(t, NewReceiver(recorderFunc(func(context.Context, Callback, []byte) error {
		begun <- struct{}{}
		<-end
		return nil
	}), Options{MaxConcurrent: 1}, zerolog.Nop()))
	request, _ := golden(t, "testdata/structured.http")
	first := make(chan int)
	go func() {
		answer, _ := exchange(t, address, request)
		first <- answer.StatusCode
	}()
	<-begun
	answer, body := exchange(t, address, request)
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	require.NotEmpty(t, answer.Header.Get("Retry-After"))
	require.Contains(t, body, "too many")
	close(end)
	require.Equal(t, http.StatusNoContent, <-first)
}

func TestARecorderThatHangsIsGivenUp(t *testing.T) {
	address := serve(t, NewReceiver(recorderFunc(func(ctx context.Context, _ Callback, _ []byte) error {
		<-ctx.Done()
		return ctx.Err()
	}), Options{Timeout: time.Millisecond}, zerolog.Nop()))
	request, _ := golden(t, "testdata/structured.http")
	answer, _ := exchange(t, address, request)
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
}

// Slow clients that have sent everything but the last byte hold no place.
func TestSlowClientsDelayNobody(t *testing.T) {
	m := &memory{}
	address := serve(t, NewReceiver(m, Options{MaxConcurrent: 1}, zerolog.Nop()))
	request, _ := golden(t, "testdata/structured.http")
	whole := wire(request)
	for range 50 {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, err = io.WriteString(c, whole[:len(whole)-1])
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
	}
	answer, _ := exchange(t, address, request)
	require.Equal(t, http.StatusNoContent, answer.StatusCode)
}

func TestNoLogLineHoldsAToken(t *testing.T) {
	var log strings.Builder
	handler := NewReceiver(&memory{}, Options{}, zerolog.New(&log))
	for _, file := range []string{"wrong-token", "not-yet-known-job", "no-token"} {
		request, _ := golden(t, "testdata/"+file+".http")
		listener := serve(t, handler)
		exchange(t, listener, request)
	}
	require.NotEmpty(t, log.String())
	for _, token := range []string{runsToken, anotherToken, fmt.Sprintf("%x", Hash(anotherToken))} {
		require.NotContains(t, log.String(), token)
	}
}

func TestTokens(t *testing.T) {
	token, hash := NewToken()
	other, _ := NewToken()
	require.Len(t, token, 43)
	require.Regexp(t, `^[A-Za-z0-9_-]+$`, token)
	require.NotEqual(t, token, other)
	require.True(t, Match(hash, Hash(token)))
	require.False(t, Match(hash, Hash(other)))
	require.False(t, Match(hash, nil))
	require.False(t, Match(nil, nil), "a run without a token takes no callback")
	require.False(t, Match([]byte{}, []byte{}))
	require.False(t, Match(hash[:1], hash[:1]))
}
