package aggregate

import (
	"bytes"
	"io"
	"sync"
)

// mostHeld is how much of the standard input may wait for the command. What a client sends beyond that has to wait on
// its side.
const mostHeld = 1 << 20

// intake holds standard input until the command reads it: what else a client sends does not wait behind what is typed.
type intake struct {
	mu      sync.Mutex
	changed sync.Cond
	held    bytes.Buffer
	ended   bool // the client sends no more
	unread  bool // nobody reads any more
}

func newIntake() *intake {
	i := &intake{}
	i.changed.L = &i.mu
	return i
}

// Write waits only while there is no room.
func (i *intake) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.held.Len() > 0 && i.held.Len()+len(p) > mostHeld && !i.unread && !i.ended {
		i.changed.Wait()
	}
	if i.unread || i.ended {
		return 0, io.ErrClosedPipe
	}
	i.changed.Broadcast()
	return i.held.Write(p)
}

// Read returns what is held, and io.EOF after its end.
func (i *intake) Read(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.held.Len() == 0 && !i.ended && !i.unread {
		i.changed.Wait()
	}
	if i.unread {
		return 0, io.ErrClosedPipe
	}
	i.changed.Broadcast()
	return i.held.Read(p)
}

// end says that the client sends no more.
func (i *intake) end() { i.set(&i.ended) }

// abandon says that nobody reads any more, and lets go of what is held.
func (i *intake) abandon() { i.set(&i.unread) }

func (i *intake) set(what *bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	*what = true
	i.changed.Broadcast()
}
