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
	m  map[string]absence
}

type absence struct {
	first   time.Time
	started int64 // when the process that answered was, as far as it matters
}

// First returns when the run was first not found, and records now if there was no earlier time.
func (a *Absences) First(uid string, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, known := a.m[uid]
	if !known {
		was = a.record(uid, absence{first: now})
	}
	return was.first
}

// Of is First for answers of the process that was started then: those of another one do not count.
func (a *Absences) Of(uid string, started int64, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, known := a.m[uid]
	if !known || was.started != started {
		was = a.record(uid, absence{now, started})
	}
	return was.first
}

// Shown records that the process that was started then has shown the run on its way out: its next answer without it
// counts as the second one, however long after the first.
func (a *Absences) Shown(uid string, started int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record(uid, absence{started: started})
}

// record returns what it records; a.mu is locked.
func (a *Absences) record(uid string, is absence) absence {
	if a.m == nil {
		a.m = map[string]absence{}
	}
	a.m[uid] = is
	return is
}

// Get returns the recorded time, if any, and records nothing.
func (a *Absences) Get(uid string) (first time.Time, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, is := a.m[uid]
	return was.first, is
}

// Clear forgets a run that was found or is being sent.
func (a *Absences) Clear(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.m, uid)
}
