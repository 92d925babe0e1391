package inputs

import (
	"slices"
	"sync"
)

// Waiters knows which HTCJobs wait for the output of which. Its methods may be called by several goroutines; keys are
// "namespace/name".
type Waiters struct {
	mu   sync.Mutex
	of   map[string]map[string]bool // the keys that wait, by that of the source
	wait map[string][]string        // the sources, by the key that waits

	missing map[string]string // the input that each key waits for
}

// Miss records which input a key waits for.
func (w *Waiters) Miss(key, input string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missing == nil {
		w.missing = map[string]string{}
	}
	w.missing[key] = input
}

// Missing returns the input that a key waits for; empty if that is not known.
func (w *Waiters) Missing(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missing[key]
}

// Wait records what a key waits for, in place of what it waited for before.
func (w *Waiters) Wait(key string, sources []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(key)
	if len(sources) == 0 {
		return
	}
	if w.of == nil {
		w.of, w.wait = map[string]map[string]bool{}, map[string][]string{}
	}
	w.wait[key] = slices.Clone(sources)
	for _, source := range sources {
		if w.of[source] == nil {
			w.of[source] = map[string]bool{}
		}
		w.of[source][key] = true
	}
}

// Forget means that a key no longer waits.
func (w *Waiters) Forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(key)
	delete(w.missing, key)
}

func (w *Waiters) forget(key string) {
	for _, source := range w.wait[key] {
		delete(w.of[source], key)
		if len(w.of[source]) == 0 {
			delete(w.of, source)
		}
	}
	delete(w.wait, key)
}

// Of lists the keys that wait for a source.
func (w *Waiters) Of(source string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := make([]string, 0, len(w.of[source]))
	for key := range w.of[source] {
		keys = append(keys, key)
	}
	return keys
}
