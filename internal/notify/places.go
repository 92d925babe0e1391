package notify

import (
	"net"
	"sync"
)

// places are taken by events while the Recorder handles them. One client address gets no more than a share of them, so
// that a client that floods the receiver leaves room for the others. Behind a proxy, all its clients count as one.
type places struct {
	all, share int

	mu    sync.Mutex
	taken int
	of    map[string]int // by client address; only those that have some
}

func newPlaces(all int) *places {
	return &places{all: all, share: max(1, all*3/4), of: map[string]int{}}
}

// take returns the function that releases the place, or false if there is none.
func (p *places) take(remoteAddr string) (free func(), ok bool) {
	client, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		client = remoteAddr
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.of[client] >= p.share {
		return nil, false
	}
	p.taken++
	p.of[client]++
	return func() { p.free(client) }, true
}

func (p *places) free(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[client]--; p.of[client] == 0 {
		delete(p.of, client)
	}
}
