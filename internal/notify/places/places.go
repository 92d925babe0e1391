// Package places limits how many requests are handled at once, and how many of them come from one client.
package places

import (
	"net/netip"
	"sync"
)

// Places are taken by requests while they are handled. One client address gets no more than a share of them, so
// that a client that floods the server leaves room for the others. Behind a proxy, all its clients count as one.
type Places struct {
	all, share int

	mu    sync.Mutex
	taken int
	of    map[string]int // by client address; only those that have some
}

// New returns so many places.
func New(all int) *Places {
	return &Places{all: all, share: max(1, all*3/4), of: map[string]int{}}
}

// Client is who counts as one client: an address, of IPv6 the network of 64 bits that anybody there may take addresses
// from.
func Client(remoteAddr string) string {
	at, err := netip.ParseAddrPort(remoteAddr)
	if err != nil {
		return remoteAddr
	}
	if a := at.Addr().Unmap(); a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(at.Addr(), 64).Masked().String()
}

// Take returns the function that releases the place, or false if there is none.
func (p *Places) Take(remoteAddr string) (free func(), ok bool) {
	client := Client(remoteAddr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.of[client] >= p.share {
		return nil, false
	}
	p.taken++
	p.of[client]++
	return func() { p.free(client) }, true
}

func (p *Places) free(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[client]--; p.of[client] == 0 {
		delete(p.of, client)
	}
}
