package kube

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// errand is a kind of thing that only HTCondor can do. Each kind has workers of its own, so that nobody's submission
// waits for another's slow removal, nor the other way round.
type errand int

const (
	submitting errand = iota
	asking            // what became of an attempt
	removing
	errands // how many there are
)

// errandOf is what an action takes.
func errandOf(a action) errand {
	switch a {
	case actSubmit:
		return submitting
	case actRemove, actSuspend, actExpire:
		return removing
	}
	return asking
}

// lane holds the keys of HTCJobs for which HTCondor is needed, a queue for each kind of errand. A key may wait in more
// than one of them, since what is decided about it changes; the claim sees to it that only one worker acts for it.
type lane struct {
	queues [errands]workqueue.TypedRateLimitingInterface[string]

	mu      sync.Mutex
	claimed map[string]time.Time // since when
}

func newLane(limiter func() workqueue.TypedRateLimiter[string]) *lane {
	l := &lane{claimed: map[string]time.Time{}}
	for e := range l.queues {
		l.queues[e] = newTurns(limiter())
	}
	return l
}

func (l *lane) add(e errand, key string)                       { l.queues[e].Add(key) }
func (l *lane) addAfter(e errand, key string, d time.Duration) { l.queues[e].AddAfter(key, d) }

// again adds a key after its back-off, which grows with every time.
func (l *lane) again(e errand, key string) { l.queues[e].AddRateLimited(key) }

// tries is how often a key was added again since it was last forgotten.
func (l *lane) tries(e errand, key string) int { return l.queues[e].NumRequeues(key) }

// forget ends the back-off of a key.
func (l *lane) forget(key string) {
	for _, queue := range l.queues {
		queue.Forget(key)
	}
}

// claim returns false while another worker acts for the key. That one queues the key for sync when it is through, and
// so whoever got false may drop it.
func (l *lane) claim(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.claimed[key]; taken {
		return false
	}
	l.claimed[key] = now
	return true
}

// since tells since when a worker acts for the key.
func (l *lane) since(key string) (at time.Time, claimed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, claimed = l.claimed[key]
	return at, claimed
}

func (l *lane) release(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.claimed, key)
}

func (l *lane) shutDown() {
	for _, queue := range l.queues {
		queue.ShutDown()
	}
}
