package backend

import (
	"errors"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// The pauses before asking again at a limit.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Limits records where an account may have no more jobs. There, only one at a time asks again of those that have as
// many jobs as what was refused, or more. The zero value is ready to use.
type Limits struct {
	// Passed is called when a submission has succeeded; nil: nobody waits for that.
	Passed func()

	mu sync.Mutex
	m  map[schedd.Identity]limit
}

type limit struct {
	said  error
	jobs  int // the fewest that were refused
	pause time.Duration
	next  time.Time // when the next may ask
}

// Met records a schedd's answer that there is no room for so many jobs. A limit on the size of one submission affects
// no other.
func (l *Limits) Met(id schedd.Identity, jobs int, said error, now time.Time) {
	if e, is := errors.AsType[*condor.Error](said); is && e.OfOneSubmission() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[schedd.Identity]limit{}
	}
	before, is := l.m[id]
	if is {
		jobs = min(jobs, before.jobs)
	}
	pause := min(max(2*before.pause, firstPause), lastPause)
	l.m[id] = limit{said: said, jobs: jobs, pause: pause, next: now.Add(pause)}
}

// Ask returns nil to callers that may send: to all, or, at a limit, to those with fewer jobs than what was refused, and
// to one of the others after every pause. The rest get the schedd's own message.
func (l *Limits) Ask(id schedd.Identity, jobs int, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, is := l.m[id]
	if !is || jobs < at.jobs {
		return nil
	}
	if now.Before(at.next) {
		return at.said
	}
	at.next = now.Add(at.pause)
	l.m[id] = at
	return nil
}

// At reports whether a limit was met at which callers with so many jobs are not to ask now.
func (l *Limits) At(id schedd.Identity, jobs int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, is := l.m[id]
	return is && jobs >= at.jobs && now.Before(at.next)
}

// Over records a successful submission of so many jobs.
func (l *Limits) Over(id schedd.Identity, jobs int) {
	l.mu.Lock()
	if jobs >= l.m[id].jobs {
		delete(l.m, id)
	}
	l.mu.Unlock()
	if l.Passed != nil {
		l.Passed()
	}
}
