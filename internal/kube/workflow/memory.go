package workflow

import (
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// blocker is why a workflow makes no progress at the moment.
type blocker struct {
	lifecycle.Blocker
	endpoint schedd.Endpoint // the one that does not answer
	retry    time.Time       // no retry before this, except after an event
}

// memory holds what is known of each workflow besides the ledger, by key. It is lost with the process: after a restart the next
// try finds it again. What is known of a workflow is not known of another one of its name. It is safe for concurrent use.
type memory struct {
	uid func(key string) string // of the workflow that has the name now, "" if there is none
	mu  sync.Mutex
	m   map[string]remembered
}

type remembered struct {
	uid      string      // of the workflow that it is about
	acting   *blocker    // of the next action
	fetching *blocker    // of output
	pushing  *blocker    // of artifacts
	took     output.Room // by a fetch that was broken off for lack of space
	wrote    time.Time   // when the status was last written
	part     time.Time   // when output of a DAG that goes on was last fetched
	parted   int         // how many of its nodes had ended then
	paging   bool        // there may be more of it
	dropping dropping
	released string // the version of the deleted object from which our finalizer was removed

	unmeasured bool      // there are results that measured does not have
	rests      time.Time // no metrics are summed up before this
	measured   measured
	ignored    string // what was wrong with results, and is in an Event

	repeats struct { // what rules want repeated when this DAG has ended
		uid string
		dag int
		all []repeatable
	}
}

func (m *memory) of(key string) remembered {
	uid := m.uid(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[key].ifOf(uid)
}

// ifOf returns what is remembered if it is about that workflow, else that nothing is.
func (r remembered) ifOf(uid string) remembered {
	if r.uid != uid {
		return remembered{uid: uid}
	}
	return r
}

func (m *memory) change(key string, f func(*remembered)) {
	uid := m.uid(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.m[key].ifOf(uid)
	f(&r)
	if m.m == nil {
		m.m = map[string]remembered{}
	}
	m.m[key] = r
}

func (m *memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, key)
}

// blocked returns the keys whose next action is blocked in such a way.
func (m *memory) blocked(such func(blocker) bool) (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, r := range m.m {
		if r.acting != nil && such(*r.acting) {
			keys = append(keys, key)
		}
	}
	return keys
}

// news reports whether a blocker says something else than the one before. Messages that differ only in numbers are the same.
func (b blocker) news(before *blocker) bool {
	words := func(b blocker) string { return b.Reason + ": " + recovery.Numbers.ReplaceAllString(b.Message, "#") }
	return before == nil || words(*before) != words(b)
}

// betweenWrites is the minimum time between two status writes of one workflow that change only counts.
const betweenWrites = time.Second
