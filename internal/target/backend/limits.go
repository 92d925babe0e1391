package backend

import (
	"errors"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

// The pauses before asking again at a limit.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Limits records where an account may have no more jobs. There only one HTCJob at a time asks again, not all that wait. The zero
// value is ready to use.
type Limits struct {
	mu sync.Mutex
	m  map[schedd.Identity]limit
}

type limit struct {
	said  error
	pause time.Duration
	next  time.Time // when the next may ask
}

// Met records a schedd's answer that there is no room. A limit on the size of one submission affects no other.
func (l *Limits) Met(id schedd.Identity, said error, now time.Time) {
	if e, is := errors.AsType[*schedd.Error](said); is && e.OfOneSubmission() {
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

// Ask returns nil to callers that may send: to all, or, at a limit, to one after every pause. The others get the schedd's own
// message.
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

// At reports whether a limit was met that callers are not to ask at now.
func (l *Limits) At(id schedd.Identity, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, is := l.m[id]
	return is && now.Before(at.next)
}

// Over records a successful submission.
func (l *Limits) Over(id schedd.Identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, id)
}
