package notify

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// crowd is a server of few connections, whose clock the test moves.
type crowd struct {
	t       *testing.T
	address string
	limited *limited

	mu    sync.Mutex
	now   time.Time
	ended map[Unanswered]int
}

// newCrowd serves at most so many connections; wrap is nil for plain HTTP.
func newCrowd(
	t *testing.T,
	most int,
	handler http.Handler,
	wrap func(net.Listener) net.Listener,
	log zerolog.Logger,
) *crowd {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &crowd{t: t, address: listener.Addr().String(), now: time.Unix(1_800_000_000, 0), ended: map[Unanswered]int{}}
	l := Limit(listener, func(why Unanswered) { c.mu.Lock(); defer c.mu.Unlock(); c.ended[why]++ }).(*limited)
	l.most, l.now = most, func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
	c.limited = l
	server := NewServer(handler, log)
	server.ReadHeaderTimeout, server.ReadTimeout = time.Minute, time.Minute // a busy machine ends no connection
	outer := net.Listener(l)
	if wrap != nil {
		outer = wrap(l)
	}
	go func() { _ = server.Serve(outer) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.Eventually(
			t,
			func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.open == 0 && len(l.waiting) == 0 },
			10*time.Second,
			time.Millisecond,
			"every connection was counted out",
		)
	})
	return c
}

func (c *crowd) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// open waits until so many connections were accepted and are open.
func (c *crowd) open(n int) {
	c.t.Helper()
	require.Eventually(
		c.t,
		func() bool { c.limited.mu.Lock(); defer c.limited.mu.Unlock(); return c.limited.open == n },
		30*time.Second,
		time.Millisecond,
	)
}

func (c *crowd) endings() map[Unanswered]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[Unanswered]int{}
	for why, n := range c.ended {
		all[why] = n
	}
	return all
}

// slow opens connections that send the beginning of a request.
func (c *crowd) slow(client string, n int, beginning string) []net.Conn {
	c.t.Helper()
	var all []net.Conn
	for range n {
		conn := from(c.t, client, c.address)
		c.t.Cleanup(func() { _ = conn.Close() })
		_, err := io.WriteString(conn, beginning)
		require.NoError(c.t, err)
		all = append(all, conn)
	}
	return all
}

// lost waits until the server has closed a connection.
func (c *crowd) lost(conn net.Conn) {
	c.t.Helper()
	require.NoError(c.t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := conn.Read(make([]byte, 1))
	require.Error(c.t, err)
	require.False(c.t, isTimeout(err), "it is still open")
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// post sends a whole event and returns the answer's status; 0: the connection was closed.
func (c *crowd) post(client string) int {
	c.t.Helper()
	request, _ := golden(c.t, "testdata/structured.http")
	conn := from(c.t, client, c.address)
	defer conn.Close()
	_, err := io.WriteString(conn, wire(request))
	if err != nil {
		return 0
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	require.NoError(c.t, answer.Body.Close())
	return answer.StatusCode
}

func TestHoweverManyConnectionsOneClientHasThereIsRoomForAnother(t *testing.T) {
	request, _ := golden(t, "testdata/structured.http")
	whole := wire(request)
	for name, beginning := range map[string]string{"nothing sent": "", "half a header": whole[:40], "a token, and a body that does not end": whole[:len(whole)-1]} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, 8, NewReceiver(&memory{}, Options{}, zerolog.Nop()), nil, zerolog.Nop())
			held := c.slow("127.0.0.2", 6, beginning)
			c.slow("127.0.0.3", 2, beginning)
			require.Equal(t, http.StatusNoContent, c.post("127.0.0.1"))
			c.lost(held[0])
			require.Equal(t, 1, c.endings()[Displaced], "of the client with most, the one that had waited longest")
		})
	}
}

func TestAClientThatHasAsManyAsAnyLosesItsOwnOldestConnection(t *testing.T) {
	c := newCrowd(t, 4, NewReceiver(&memory{}, Options{}, zerolog.Nop()), nil, zerolog.Nop())
	held := c.slow("127.0.0.2", 4, "")
	require.Zero(t, c.post("127.0.0.2"), "those that it has are just as new")
	require.Equal(t, map[Unanswered]int{Refused: 1}, c.endings())
	c.pass(grace)
	require.Equal(t, http.StatusNoContent, c.post("127.0.0.2"))
	c.lost(held[0])
	require.Equal(t, 1, c.endings()[Displaced])
}

func TestWhereEverybodyHasOneConnectionTheOldestGoes(t *testing.T) {
	c := newCrowd(t, 3, NewReceiver(&memory{}, Options{}, zerolog.Nop()), nil, zerolog.Nop())
	held := c.slow("127.0.0.2", 1, "")
	c.open(1)
	c.pass(time.Millisecond)
	c.slow("127.0.0.3", 1, "")
	c.slow("127.0.0.4", 1, "")
	require.Zero(t, c.post("127.0.0.1"))
	c.pass(grace)
	require.Equal(t, http.StatusNoContent, c.post("127.0.0.1"))
	c.lost(held[0])
}

func TestAnEventThatIsBeingRecordedIsNotDisplaced(t *testing.T) {
	begun, end := make(chan struct{}, 2), make(chan struct{})
	c := newCrowd(t, 3, NewReceiver(recorderFunc(func(context.Context, Callback, []byte) error {
		begun <- struct{}{}
		<-end
		return nil
	}), Options{}, zerolog.Nop()), nil, zerolog.Nop())
	statuses := make(chan int, 2)
	for range 2 {
		go func() { statuses <- c.post("127.0.0.2") }()
		<-begun
	}
	held := c.slow("127.0.0.2", 1, "")
	c.open(3)
	c.pass(grace)
	c.slow("127.0.0.1", 1, "")
	c.lost(held[0])
	close(end)
	require.Equal(t, http.StatusNoContent, <-statuses)
	require.Equal(t, http.StatusNoContent, <-statuses)
}

func TestConnectionsThatBringNoRequestAreCountedAndNotLogged(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	writePair(t, "localhost", cert, key)
	config, err := TLS(cert, key, zerolog.Nop())
	require.NoError(t, err)
	for name, wrap := range map[string]func(net.Listener) net.Listener{
		"plain HTTP":        nil,
		"TLS alone":         func(l net.Listener) net.Listener { return tls.NewListener(l, config) },
		"TLS or plain HTTP": func(l net.Listener) net.Listener { return Either(l, config) },
	} {
		t.Run(name, func(t *testing.T) {
			log := &lines{}
			c := newCrowd(
				t,
				100,
				NewReceiver(&memory{}, Options{}, zerolog.Nop()),
				wrap,
				zerolog.New(log).Level(zerolog.InfoLevel),
			)
			for _, beginning := range []string{"", "POST /cloudevents", "\x16\x03\x01\x00\x05hello"} {
				conn := from(t, "127.0.0.1", c.address)
				_, err := io.WriteString(conn, beginning)
				require.NoError(t, err)
				require.NoError(t, conn.(*net.TCPConn).CloseWrite())
				_, _ = io.Copy(io.Discard, conn) // until the server gives up
				require.NoError(t, conn.Close())
			}
			require.Eventually(t, func() bool { return c.endings()[NoRequest] == 3 }, 10*time.Second, time.Millisecond)
			require.Empty(t, log.String())
		})
	}
}

func TestAPanicIsLogged(t *testing.T) {
	log := &lines{}
	c := newCrowd(
		t,
		1,
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("of a handler") }),
		nil,
		zerolog.New(log).Level(zerolog.ErrorLevel),
	)
	require.Zero(t, c.post("127.0.0.1"))
	require.Eventually(
		t,
		func() bool { return strings.Contains(log.String(), "of a handler") },
		10*time.Second,
		time.Millisecond,
	)
}

// The answer to a request that is not worth reading does not wait for the rest of it.
func TestWithoutATokenTheAnswerComesBeforeTheBody(t *testing.T) {
	address := serve(t, NewReceiver(&memory{}, Options{}, zerolog.Nop()))
	conn := from(t, "127.0.0.1", address)
	defer conn.Close()
	_, err := io.WriteString(
		conn,
		"POST /cloudevents HTTP/1.1\r\nHost: htcd\r\nAuthorization: Bearer guess\r\nContent-Length: 10000\r\n\r\n{",
	)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.True(t, answer.Close)
}

// The longest event that a job sends, by either of its senders, is not too large.
func TestTheLargestEventOfAJobIsTaken(t *testing.T) {
	long := strings.Repeat("a", maxName)
	for name, worst := range map[string]string{
		"quotes": `"`, "backslashes": `\`, "line ends": "\n", "control characters": "\x01", "what is no text": "\xff", "what HTML minds": "<",
		"separators of lines": "\u2028", "emoji": "\U0001F680",
	} {
		body, err := encode(
			Callback{
				Name:      long,
				Namespace: long,
				JobID:     "4294967295.4294967295",
				Retcode:   255,
				Stderr:    strings.Repeat(worst, MaxStderr),
				Node: &Node{
					Number: 1 << 62, Exit: 255, Results: strings.Repeat(worst, MaxResults+1),
				},
			},
			time.Now(),
		)
		require.NoError(t, err)
		require.LessOrEqual(t, len(body), maxBody, name)
		c, err := decode(http.Header{"Content-Type": {"application/cloudevents+json"}}, body)
		require.NoError(t, err, name)
		require.Len(t, c.Name, maxName)
	}
	// callback.sh escapes the same, and names the job id three times.
	require.LessOrEqual(t, 2*MaxStderr+2*(MaxResults+1)+2*maxName+1024, maxBody)
}

// lines is a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.text.String() }
