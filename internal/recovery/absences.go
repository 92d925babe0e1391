package recovery

import (
	"sync"
	"time"
)

// AbsentTwice is how far apart two successful answers without a trace of the tag must be before the run is sent
// again. The condor_submit of an earlier htcd died with it (package tool), before this one could take the Lease. What it
// had sent by then, the schedd has either committed or dropped when it answers a later condor_q: it serves the connection
// of a submission from the login to the commit, or to its end, and nobody else meanwhile (handle_q in its qmgmt.cpp). So
// the first answer shows it; the second is for what we may have overlooked.
const AbsentTwice = 3 * time.Second

// Absences remembers when a run was first not found. Memory is enough: after a restart the schedd is asked from the beginning.
type Absences struct {
	mu sync.Mutex
	m  map[string]time.Time
}

// First returns when it was, which is now unless it was before.
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

// Get is First where nothing is remembered.
func (a *Absences) Get(uid string) (first time.Time, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, is = a.m[uid]
	return first, is
}

// Clear forgets it: there is a trace of the run, or it is sent.
func (a *Absences) Clear(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.m, uid)
}
