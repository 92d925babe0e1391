package tool

import (
	"maps"
	"path/filepath"
	"sync"
)

// starts counts the processes that this one has started.
var starts counted

type counted struct {
	mu sync.Mutex
	of map[string]uint64
}

func (c *counted) count(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]uint64{}
	}
	c.of[filepath.Base(path)]++
}

// Starts returns how often Run has started each program, by its name without directories: condor_q, kinit.
func Starts() map[string]uint64 {
	starts.mu.Lock()
	defer starts.mu.Unlock()
	return maps.Clone(starts.of)
}
