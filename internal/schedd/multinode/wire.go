package multinode

import (
	"context"
	"crypto/tls"
	"encoding/gob"
	"io"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// message is all that nodes tell one another. The first on a connection says what it is for: a node joins, or a command
// is to be started.
type message struct {
	Join  int    // number of the node, from 1
	Port  int    // where it listens
	Start string // a command for sh
	Go    []int  // all nodes have joined, and listen at these ports
	Out   []byte // of standard output
	Err   []byte // of standard error
	Ended bool   // the script, or the command, has; from node 0: that of the other node is to end
	Code  int    // its return code
}

// conn is a connection on which both ends have shown that they have the key.
type conn struct {
	net.Conn
	*gob.Decoder

	mu  sync.Mutex
	enc *gob.Encoder
}

func newConn(c net.Conn) *conn {
	return &conn{Conn: c, Decoder: gob.NewDecoder(c), enc: gob.NewEncoder(c)}
}

func (c *conn) send(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enc.Encode(m)
}

// receive returns the next message.
func (c *conn) receive() (m message, err error) {
	err = c.Decode(&m)
	return m, err
}

// greeting is how long the other end may take to prove who it is, and to say what it wants.
const greeting = 10 * time.Second

// accept calls fn for each connection whose other end has the key, with its first message.
func accept(l net.Listener, config *tls.Config, fn func(*conn, message)) {
	room := make(chan struct{}, 200) // others may connect, too
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		room <- struct{}{}
		go func() {
			defer c.Close()
			greeted := newConn(tls.Server(c, config))
			_ = c.SetDeadline(time.Now().Add(greeting))
			first, err := greeted.receive()
			_ = c.SetDeadline(time.Time{})
			<-room
			if err == nil {
				fn(greeted, first)
			}
		}()
	}
}

// dial connects to a node, and sends the first message.
func dial(ctx context.Context, config *tls.Config, address string, port int, first message) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	d := tls.Dialer{NetDialer: &net.Dialer{KeepAlive: 15 * time.Second}, Config: config}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	to := newConn(c)
	if err := to.send(first); err != nil {
		_ = c.Close()
		return nil, err
	}
	return to, nil
}

// stream sends what is written to it.
type stream struct {
	to  *conn
	err bool
}

func (s stream) Write(text []byte) (int, error) {
	m := message{Out: text}
	if s.err {
		m = message{Err: text}
	}
	if err := s.to.send(m); err != nil {
		return 0, err
	}
	return len(text), nil
}

// write writes what the message brings.
func (m message) write(out, err io.Writer) {
	_, _ = out.Write(m.Out)
	_, _ = err.Write(m.Err)
}

// code returns how a command ended, as shells say it; 127 if it could not be started.
func code(cmd *exec.Cmd) int {
	if cmd.ProcessState == nil {
		return 127
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
