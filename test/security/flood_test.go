package security

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// strangers are clients without a run's token that keep many slow connections to the receiver open.
type strangers struct {
	address string
	opened  atomic.Int64
	clients sync.WaitGroup
}

// keep opens a connection as often as the receiver closes it, until ctx ends.
func (s *strangers) keep(ctx context.Context, from string, begin func(net.Conn) error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for ctx.Err() == nil {
		conn, err := d.DialContext(ctx, "tcp", s.address)
		if err == nil {
			s.opened.Add(1)
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			if begin(conn) == nil {
				_, _ = io.Copy(io.Discard, conn)
			}
			stop()
			_ = conn.Close()
		}
		time.Sleep(500 * time.Millisecond) // to leave some of the processor to the job
	}
}

// slow are the ways to begin what never ends.
func slow() []func(net.Conn) error {
	token := make([]byte, 32)
	_, _ = rand.Read(token)
	guess := base64.RawURLEncoding.EncodeToString(token)
	head := "POST /cloudevents HTTP/1.1\r\nHost: htcd\r\nContent-Type: application/cloudevents+json\r\n"
	body := strings.Repeat(" ", 20<<10)
	encrypted := func(text string) func(net.Conn) error {
		return func(conn net.Conn) error {
			_, err := io.WriteString(tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), text)
			return err
		}
	}
	return []func(net.Conn) error{
		func(net.Conn) error { return nil },
		func(conn net.Conn) error { _, err := io.WriteString(conn, "\x16\x03\x01\x02\x00\x01\x00"); return err },
		encrypted(head[:60]),
		encrypted(
			head + fmt.Sprintf("Authorization: Bearer guess\r\nContent-Length: %d\r\n\r\n%s", len(body), body[1:]),
		),
		encrypted(
			head + fmt.Sprintf("Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", guess, len(body), body[1:]),
		),
	}
}

// resident is htcd's size in MiB, and how many connections ended without an answer.
func resident(b *trial.Bench) (mib int, unanswered float64) {
	b.T.Helper()
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", world.Ports.Health))
	require.NoError(b.T, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	require.NoError(b.T, err)
	for line := range strings.Lines(string(page)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "process_resident_memory_bytes":
			mib = int(n) >> 20
		case strings.HasPrefix(name, "htcd_receiver_unanswered_connections_total{"):
			unanswered += n
		}
	}
	return mib, unanswered
}

// All of them, and the job, come from one address, or each from one of many: the callback arrives, and htcd stays
// small.
func TestThousandsOfSlowConnectionsKeepNobodysCallbackOut(t *testing.T) {
	for name, from := range map[string]func(i int) string{
		"from the job's own address": func(int) string { return "127.0.0.1" },
		"from sixty addresses":       func(i int) string { return fmt.Sprintf("127.0.1.%d", 1+i%60) },
	} {
		t.Run(name, func(t *testing.T) {
			b := trial.New(t)
			world, err := parts.Open(b.Lab)
			require.NoError(t, err)
			before, counted := resident(b)
			s := &strangers{address: fmt.Sprintf("127.0.0.1:%d", world.Ports.Receiver)}
			ctx, stop := context.WithCancel(t.Context())
			defer s.clients.Wait()
			defer stop()
			ways := slow()
			for i := range 3000 {
				s.clients.Go(func() { s.keep(ctx, from(i), ways[i%len(ways)]) })
			}
			b.Eventually(
				func() bool { return s.opened.Load() > 6000 },
				func() string { return fmt.Sprintf("only %d were opened", s.opened.Load()) },
			)
			b.Create("flooded", "exit 3\n")
			most := 0
			failed := b.Until("flooded", "ended", func(job *v1alpha1.HTCJob) bool {
				now, _ := resident(b)
				most = max(most, now)
				return job.Status.Phase == v1alpha1.PhaseFailed
			})
			require.Equal(t, "callback", b.Source(failed), "it was not HTCondor alone that told of the end")
			_, ended := resident(b)
			t.Logf(
				"%d connections opened, %.0f ended without an answer; htcd grew from %d to %d MiB",
				s.opened.Load(),
				ended-counted,
				before,
				most,
			)
			require.Greater(t, ended, counted)
			require.Less(t, most, before+350, "2,048 connections take 220 MB at their worst")
		})
	}
}
