package kube

import (
	"sync"
	"time"
)

// betweenWrites is the least time between two status writes of one HTCJob that change nothing but counts. While the
// jobs of a large queue end one by one, every watcher gets the whole object with every write.
const betweenWrites = time.Second

// pace remembers when the status of each open HTCJob was written last, safe for concurrent use.
type pace struct {
	mu sync.Mutex
	m  map[string]time.Time
}

// wait is how long the next such write has to wait.
func (p *pace) wait(key string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m[key].Add(betweenWrites).Sub(now)
}

// begin is wait for the first write: it counts from the first look.
func (p *pace) begin(key string, now time.Time) time.Duration {
	p.mu.Lock()
	_, seen := p.m[key]
	p.mu.Unlock()
	if !seen {
		p.wrote(key, now)
	}
	return p.wait(key, now)
}

func (p *pace) wrote(key string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m == nil {
		p.m = map[string]time.Time{}
	}
	p.m[key] = now
}

func (p *pace) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.m, key)
}
