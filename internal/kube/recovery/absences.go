package recovery

import (
	"sync"
	"time"
)

// AbsentTwice is the minimum time between two successful answers without a trace of the tag before the run is sent
// again. The condor_submit of an earlier htcd died with it (package tool), before this one could take the Lease. By the
// time the schedd answers a later condor_q, it has either committed or dropped that submission: it serves a
// submission's connection from the login to the commit, or to its end, and nobody else meanwhile (handle_q in its
// qmgmt.cpp). So the first answer already shows the cluster; the second is a precaution.
const AbsentTwice = 3 * time.Second

// Absences remembers when a run was first not found. Memory is enough: after a restart the schedd is asked twice again.
type Absences struct {
	mu sync.Mutex
	m  map[string]time.Time
}

// First returns when the run was first not found, and records now if there was no earlier time.
func (a *Absences) First(uid string, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.m == nil {
		a.m = map[string]time.Time{}
	}
	if _, known := a.m[uid]; !known {
		a.m[uid] = now
	}
	return a.m[uid]
}

// Get returns the recorded time, if any, and records nothing.
func (a *Absences) Get(uid string) (first time.Time, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, is = a.m[uid]
	return first, is
}

// Clear forgets a run that was found or is being sent.
func (a *Absences) Clear(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.m, uid)
}
