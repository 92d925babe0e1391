package orphans

import (
	"slices"
	"sync"
)

// Deletions remembers which objects were deleted, or could be without any finalizer in the way. It is safe for
// concurrent use, and its zero value is ready to use.
type Deletions struct {
	mu sync.Mutex
	m  map[string][]string // UIDs by key
}

// Note records one.
func (d *Deletions) Note(key, uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.m == nil {
		d.m = map[string][]string{}
	}
	d.m[key] = append(d.m[key], uid)
}

func (d *Deletions) seen(key, uid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.m[key], uid)
}

// Forget drops a key for which the ledger has nothing any more.
func (d *Deletions) Forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.m, key)
}
