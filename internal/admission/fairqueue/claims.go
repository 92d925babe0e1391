package fairqueue

import (
	"sync"
	"time"
)

// Claims ensures that at most one worker acts on a key, even if the key waits in several queues. The zero value is
// ready to use.
type Claims struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Claim reports whether the caller may act on the key; it is false while another does. After true the caller must call
// Release.
func (c *Claims) Claim(key string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.since[key]; taken {
		return false
	}
	if c.since == nil {
		c.since = map[string]time.Time{}
	}
	c.since[key] = now
	return true
}

// Since returns when the present claim on the key began.
func (c *Claims) Since(key string) (at time.Time, claimed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, claimed = c.since[key]
	return at, claimed
}

// Release ends a claim.
func (c *Claims) Release(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, key)
}
