package metrics

import "sync"

// mostNamespaces bounds the series of a metric by namespace.
const mostNamespaces = 200

// firstNames gives the first namespaces labels of their own.
type firstNames struct {
	mu   sync.Mutex
	seen map[string]bool
}

// of returns the label of a namespace.
func (f *firstNames) of(namespace string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[namespace] {
		return namespace
	}
	if len(f.seen) >= mostNamespaces {
		return otherNamespaces
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[namespace] = true
	return namespace
}
