package backend

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"htc.cern.ch/htcd/internal/schedd"
)

// limiter lets commands through to one schedd at a pace.
type limiter struct {
	mu      sync.Mutex
	pace    Pace
	why     string // the pace is below the most; "": it is not
	running int
	long    int // of them, transfers and submissions: one place is always left for questions
	waiting []*waiter
	rate    *rate.Limiter

	// history has the one that reads the schedd's history: package schedd has no two read at a time. Who waits for it
	// has no place yet.
	history chan struct{}

	quickest time.Duration // of the answers to a question of constant size; 0: none
	latest   time.Duration

	// Questions that ended since it learned last, and those of them that were killed at their deadline. How long a
	// transfer or a submission takes is for users to decide.
	ended, late int
}

type waiter struct {
	long bool
	turn chan struct{}
}

func newLimiter(most Pace) *limiter {
	return &limiter{
		pace:    most,
		rate:    rate.NewLimiter(rate.Limit(most.PerSecond), most.Commands),
		history: make(chan struct{}, 1),
	}
}

// readHistory waits until nobody else reads the history; end must then be called.
func (t *limiter) readHistory(ctx context.Context) (end func(), err error) {
	select {
	case t.history <- struct{}{}:
		return func() { <-t.history }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enter waits for a command's turn; leave must then be called at its end.
func (t *limiter) enter(ctx context.Context, long bool) error {
	if err := t.rate.Wait(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	w := &waiter{long, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.admit()
	t.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.turn: // it was admitted meanwhile
		t.left(long)
	default:
		t.waiting = slices.DeleteFunc(t.waiting, func(other *waiter) bool { return other == w })
	}
	return ctx.Err()
}

func (t *limiter) leave(long bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left(long)
}

func (t *limiter) left(long bool) {
	t.running--
	if long {
		t.long--
	} else {
		t.ended++
	}
	t.admit()
}

// admit lets through who may, in the order of arrival; questions pass long commands that have to wait.
func (t *limiter) admit() {
	rest := t.waiting[:0]
	for _, w := range t.waiting {
		if t.running >= t.pace.Commands || w.long && t.long >= t.pace.Commands-1 {
			rest = append(rest, w)
			continue
		}
		t.running++
		if w.long {
			t.long++
		}
		close(w.turn)
	}
	clear(t.waiting[len(rest):])
	t.waiting = rest
}

// answered notes how long the schedd took for a question of constant size.
func (t *limiter) answered(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latest = took
	if t.quickest == 0 || took < t.quickest {
		t.quickest = took
	}
}

// killed notes that a question was killed at its deadline.
func (t *limiter) killed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late++
}

// learn adapts the pace to what the schedd has told the collector, to its latest answer, and to how questions ended.
func (t *limiter) learn(most Pace, d schedd.Daemon) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := Load{DutyCycle: d.DutyCycle, Took: t.latest, Usually: t.quickest}
	l.Late = float64(t.late) / float64(max(t.ended, 1))
	t.pace, t.why = most.Next(t.pace, l)
	t.ended, t.late = 0, 0
	t.rate.SetLimit(rate.Limit(t.pace.PerSecond))
	t.rate.SetBurst(t.pace.Commands)
	t.admit()
}

// limiters are those of all schedds. The zero value is ready to use.
type limiters struct {
	mu sync.Mutex
	m  map[schedd.Endpoint]*limiter
}

func (all *limiters) of(endpoint schedd.Endpoint, most Pace) *limiter {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.m == nil {
		all.m = map[schedd.Endpoint]*limiter{}
	}
	if all.m[endpoint] == nil {
		all.m[endpoint] = newLimiter(most)
	}
	return all.m[endpoint]
}

// now returns the pace and why it is below the most; "" if it is not.
func (t *limiter) now() (Pace, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pace, t.why
}
