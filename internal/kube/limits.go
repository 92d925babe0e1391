package kube

import (
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

// limits knows where an account may have no more jobs. There one HTCJob at a time asks again, not all that wait.
type limits struct {
	mu sync.Mutex
	m  map[limitKey]limit
}

type limitKey struct {
	place schedd.Place
	who   schedd.Identity
}

type limit struct {
	said  error
	pause time.Duration
	next  time.Time // when somebody may ask again
}

// met takes note of a schedd's word that there is no room. What speaks of the size of one submission concerns no other.
func (l *limits) met(key limitKey, said error, now time.Time) {
	if strings.Contains(said.Error(), "MAX_JOBS_PER_SUBMISSION") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[limitKey]limit{}
	}
	pause := min(max(2*l.m[key].pause, firstRetry), lastRetry)
	l.m[key] = limit{said: said, pause: pause, next: now.Add(pause)}
}

// ask returns nil to whom may send something: to everybody, or, at a limit, to one after every pause. The others get the schedd's
// own words.
func (l *limits) ask(key limitKey, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, is := l.m[key]
	if !is {
		return nil
	}
	if now.Before(at.next) {
		return at.said
	}
	at.next = now.Add(at.pause)
	l.m[key] = at
	return nil
}

// over takes note of a submission that succeeded.
func (l *limits) over(key limitKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, key)
}

// wakeLimited lets two ask again that wait at a limit: each that is sent wakes two more.
func (c *Controller) wakeLimited() {
	woken := 0
	for key, e := range c.blockers.with(func(t blocker) bool { return t.reason == schedd.Limit.String() }) {
		if woken++; woken > 2 {
			return
		}
		c.actions.forget(key)
		c.actions.add(e, key)
	}
}
