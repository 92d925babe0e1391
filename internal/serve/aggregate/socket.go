package aggregate

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// protocolV5 is the only one with which a client can end the standard input.
const protocolV5 = "v5.channel.k8s.io"

// The channels of the protocol: the first byte of a message.
const (
	channelStdin = iota
	channelStdout
	channelStderr
	channelError
	channelResize
	channelClose = 255
)

// socket is a WebSocket with its channels.
type socket struct {
	conn  *websocket.Conn
	stdin *intake
	sizes chan Size

	mu sync.Mutex // of writing
}

// longestMessage is more than any client sends at once; client-go sends 32 KiB.
const longestMessage = 1 << 20

// upgrade makes a WebSocket of a request.
func upgrade(w http.ResponseWriter, r *http.Request, c Command) (*socket, error) {
	conn, err := (&websocket.Upgrader{Subprotocols: []string{protocolV5}, HandshakeTimeout: 10 * time.Second}).Upgrade(
		w,
		r,
		nil,
	)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(longestMessage)
	s := &socket{conn: conn, stdin: newIntake(), sizes: make(chan Size, 1)}
	if !c.Stdin {
		s.stdin.abandon()
	}
	return s, nil
}

func (s *socket) streams(c Command) Streams {
	streams := Streams{Stdout: channel{s, channelStdout}, Stderr: channel{s, channelStderr}, Sizes: s.sizes}
	if c.Stdin {
		streams.Stdin = s.stdin
	}
	if c.TTY {
		streams.Stderr = nil
	}
	return streams
}

// read takes what the client sends until the connection ends.
func (s *socket) read() {
	defer s.stdin.end()
	for {
		kind, message, err := s.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.BinaryMessage || len(message) == 0 {
			continue
		}
		switch data := message[1:]; message[0] {
		case channelStdin:
			_, _ = s.stdin.Write(data) // the command may read no more
		case channelClose:
			if len(data) == 1 && data[0] == channelStdin {
				s.stdin.end()
			}
		case channelResize:
			var size Size
			if json.Unmarshal(data, &size) == nil && size.Width > 0 && size.Height > 0 {
				s.resize(size)
			}
		}
	}
}

// resize keeps only the newest size.
func (s *socket) resize(size Size) {
	for {
		select {
		case s.sizes <- size:
			return
		case <-s.sizes:
		}
	}
}

// writeTakes is how long a client may take to accept some output.
const writeTakes = time.Minute

// beatsEvery is how often a client learns that the connection lives. client-go gives up after a minute.
const beatsEvery = 10 * time.Second

// beat sends pongs that nobody has asked for until ctx ends or the client has gone. The client's own pings wait behind
// its standard input, and that waits for the command.
func (s *socket) beat(ctx context.Context) {
	ticker := time.NewTicker(beatsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if s.conn.WriteControl(websocket.PongMessage, nil, time.Now().Add(writeTakes)) != nil {
				return
			}
		}
	}
}

func (s *socket) write(to byte, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTakes)); err != nil {
		return err
	}
	return s.conn.WriteMessage(websocket.BinaryMessage, append([]byte{to}, data...))
}

// end says how the command ended, and closes.
func (s *socket) end(err error) {
	s.stdin.abandon()
	if text, broken := json.Marshal(status(err)); broken == nil {
		_ = s.write(channelError, text) // the client may have gone
	}
	_ = s.conn.WriteControl(
		websocket.CloseMessage,
		websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
		time.Now().Add(time.Second),
	)
	_ = s.conn.Close()
}

// channel is one that output goes to.
type channel struct {
	s  *socket
	to byte
}

func (c channel) Write(p []byte) (int, error) {
	if err := c.s.write(c.to, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
