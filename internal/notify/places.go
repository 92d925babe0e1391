package notify

import (
	"net"
	"sync"
)

// places are taken by events while they are in the Recorder's hands. One
// client address gets no more than a share of them, so that whoever floods the
// receiver leaves room for the others. Behind a proxy, all who come through it
// are one client.
type places struct {
	all, share int

	mu    sync.Mutex
	taken int
	of    map[string]int // by client address; without those that have none
}

func newPlaces(all int) *places {
	return &places{all: all, share: max(1, all*3/4), of: map[string]int{}}
}

// take returns how to give the place back, or false when there is none.
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
