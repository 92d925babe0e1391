package notify

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// from is a connection from that loopback address.
func from(t *testing.T, client, address string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
	c, err := d.Dial("tcp", address)
	require.NoError(t, err)
	return c
}

func TestOneClientNeverTakesEveryPlace(t *testing.T) {
	end, refused := make(chan struct{}), make(chan struct{}, 1)
	var held sync.WaitGroup
	held.Add(3)
	address := serve(t, NewReceiver(recorderFunc(func(_ context.Context, c Callback, _ []byte) error {
		if c.Name == "flood" {
			held.Done()
			<-end
		}
		return nil
	}), Options{MaxConcurrent: 4, Answered: func(code int, _ time.Duration) {
		if code == http.StatusServiceUnavailable {
			refused <- struct{}{}
		}
	}}, zerolog.Nop()))
	honest, _ := golden(t, "testdata/structured.http")
	flood := wire(strings.Replace(honest, `"zero"`, `"flood"`, 1))
	require.NotEqual(t, wire(honest), flood)
	var conns []net.Conn
	for range 4 {
		c := from(t, "127.0.0.2", address)
		conns = append(conns, c)
		_, err := io.WriteString(c, flood)
		require.NoError(t, err)
	}
	held.Wait()
	<-refused
	answer, _ := exchange(t, address, honest)
	require.Equal(t, http.StatusNoContent, answer.StatusCode)
	close(end)
	statuses := map[int]int{}
	for _, c := range conns {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		statuses[answer.StatusCode]++
		require.NoError(t, c.Close())
	}
	require.Equal(t, map[int]int{http.StatusNoContent: 3, http.StatusServiceUnavailable: 1}, statuses)
	answer, _ = exchange(t, address, honest)
	require.Equal(t, http.StatusNoContent, answer.StatusCode, "the places were released")
}

// Some clients send a byte now and then, others send forged events as fast as they can, within the limits of htcd:
// every event of the honest ones is accepted at its first try.
func TestFloodingAndSlowClientsDelayNobody(t *testing.T) {
	var took, forged atomic.Int64
	token := Hash(runsToken)
	address := serve(t, NewReceiver(recorderFunc(func(_ context.Context, _ Callback, hash []byte) error {
		if !Match(token, hash) {
			forged.Add(1)
			return ErrForbidden
		}
		took.Add(1)
		return nil
	}), Options{}, zerolog.Nop()))
	honest, _ := golden(t, "testdata/structured.http")
	whole := wire(honest)
	guess := strings.Replace(whole, runsToken, anotherToken, 1)
	require.NotEqual(t, whole, guess)

	var clients sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 200 {
		c := from(t, "127.0.0.3", address)
		_, err := io.WriteString(c, whole[:len(whole)/2])
		require.NoError(t, err)
		clients.Go(func() { <-ctx.Done(); _ = c.Close() })
	}
	for range 8 {
		clients.Go(func() {
			c := from(t, "127.0.0.2", address)
			defer c.Close()
			answers := bufio.NewReader(c)
			for ctx.Err() == nil {
				if _, err := io.WriteString(c, guess); err != nil {
					return
				}
				answer, err := http.ReadResponse(answers, nil)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
			}
		})
	}
	var slowest time.Duration
	for forged.Load() < 2000 || took.Load() < 50 {
		began := time.Now()
		answer, body := exchange(t, address, honest)
		require.Equal(t, http.StatusNoContent, answer.StatusCode, body)
		slowest = max(slowest, time.Since(began))
	}
	stop()
	clients.Wait()
	require.Less(t, slowest, 2*time.Second)
	t.Logf("%d events accepted beside %d forged ones, the slowest in %s", took.Load(), forged.Load(), slowest)
}
