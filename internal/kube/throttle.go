package kube

import (
	"sync"
	"time"
)

// betweenWrites is the minimum time between two status writes of one HTCJob that change only counts: every watcher gets
// the whole object with every write, and the jobs of a large HTCJob end one by one.
const betweenWrites = time.Second

// throttle remembers when the status of each open HTCJob was last written. It is safe for concurrent use.
type throttle struct {
	mu sync.Mutex
	m  map[string]time.Time
}

// wait returns how long the next such write has to wait.
func (t *throttle) wait(key string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.m[key].Add(betweenWrites).Sub(now)
}

// begin is wait for the first write; it counts from the first sync.
func (t *throttle) begin(key string, now time.Time) time.Duration {
	t.mu.Lock()
	_, seen := t.m[key]
	t.mu.Unlock()
	if !seen {
		t.wrote(key, now)
	}
	return t.wait(key, now)
}

func (t *throttle) wrote(key string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[string]time.Time{}
	}
	t.m[key] = now
}

func (t *throttle) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, key)
}
