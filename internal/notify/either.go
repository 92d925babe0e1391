package notify

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// Either returns a listener that speaks TLS with clients that begin with it, and plain HTTP with others: jobs go on to
// report their ends as they were told when they were sent, and an Ingress may end TLS.
func Either(l net.Listener, config *tls.Config) net.Listener { return &either{l, config} }

type either struct {
	net.Listener
	config *tls.Config
}

func (l *either) Accept() (net.Conn, error) {
	plain, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &undecided{Conn: plain, config: l.config}, nil
}

// undecided is a connection on which nothing was read yet. Deadlines are those of the connection itself.
type undecided struct {
	net.Conn
	config *tls.Config

	once    sync.Once
	inner   net.Conn                 // how it is read and written
	secured atomic.Pointer[tls.Conn] // the same, with TLS
}

// handshake is the first byte of a TLS connection; no request of HTTP begins with it.
const handshake = 0x16

func (c *undecided) decide(read bool) net.Conn {
	c.once.Do(func() {
		c.inner = c.Conn
		if !read { // a server that speaks first has given up
			return
		}
		var first [1]byte
		n, err := c.Conn.Read(first[:])
		c.inner = &begun{Conn: c.Conn, first: first[:n], err: err}
		if n == 1 && first[0] == handshake {
			secured := tls.Server(c.inner, c.config)
			c.secured.Store(secured)
			c.inner = secured
		}
	})
	return c.inner
}

func (c *undecided) Read(b []byte) (int, error)  { return c.decide(true).Read(b) }
func (c *undecided) Write(b []byte) (int, error) { return c.decide(false).Write(b) }

// Close may be called while another goroutine waits for the first byte.
func (c *undecided) Close() error {
	if secured := c.secured.Load(); secured != nil {
		return secured.Close()
	}
	return c.Conn.Close()
}

// CloseWrite is for answers to requests that were not read.
func (c *undecided) CloseWrite() error {
	if secured := c.secured.Load(); secured != nil {
		return secured.CloseWrite()
	}
	return closeWrite(c.Conn)
}

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// begun is a connection of which the first byte was read.
type begun struct {
	net.Conn
	first []byte
	err   error
}

func (c *begun) Read(b []byte) (int, error) {
	switch {
	case len(c.first) > 0 && len(b) > 0:
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	case c.err != nil:
		return 0, c.err
	}
	return c.Conn.Read(b)
}
