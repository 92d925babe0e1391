package push

import "sync"

// naming are the keys for which a reference is being given its new meaning. It is safe for concurrent use.
type naming struct {
	mu sync.Mutex
	m  map[string]bool
}

func (n *naming) begin(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.m == nil {
		n.m = map[string]bool{}
	}
	n.m[key] = true
}

func (n *naming) end(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.m, key)
}

func (n *naming) is(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.m[key]
}
