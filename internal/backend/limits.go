package backend

import (
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

// The pauses after which one may ask again at a limit.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Limits knows where an account may have no more jobs. There one HTCJob at a time asks again, not all that wait. The zero value
// is ready to use.
type Limits struct {
	mu sync.Mutex
	m  map[schedd.Identity]limit
}

type limit struct {
	said  error
	pause time.Duration
	next  time.Time // when somebody may ask again
}

// Met takes note of a schedd's word that there is no room. What speaks of the size of one submission concerns no other.
func (l *Limits) Met(id schedd.Identity, said error, now time.Time) {
	if strings.Contains(said.Error(), "MAX_JOBS_PER_SUBMISSION") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[schedd.Identity]limit{}
	}
	pause := min(max(2*l.m[id].pause, firstPause), lastPause)
	l.m[id] = limit{said: said, pause: pause, next: now.Add(pause)}
}

// Ask returns nil to whom may send something: to everybody, or, at a limit, to one after every pause. The others get the schedd's
// own words.
func (l *Limits) Ask(id schedd.Identity, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, is := l.m[id]
	if !is {
		return nil
	}
	if now.Before(at.next) {
		return at.said
	}
	at.next = now.Add(at.pause)
	l.m[id] = at
	return nil
}

// Over takes note of a submission that succeeded.
func (l *Limits) Over(id schedd.Identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, id)
}
