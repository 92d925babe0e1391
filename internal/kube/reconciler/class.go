package reconciler

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
)

// Class is a class of actions that need HTCondor. Each has its own queue and workers, so that a submission never
// waits for somebody else's slow removal, nor the other way round.
type Class int

const (
	Submitting Class = iota
	Asking           // questions about what became of an attempt
	Removing         // removals of jobs from HTCondor that the object outlives
	Deleting         // removals of all jobs of a deleted object, which wait for a command that removes them together
	Classes          // the number of classes
)

// Back-off after failures, per object.
const (
	FirstRetry = time.Second
	LastRetry  = time.Minute
)

// NewQueue returns a queue with that back-off.
func NewQueue() fairqueue.Queue { return queue(FirstRetry, LastRetry) }

func queue(first, last time.Duration) fairqueue.Queue {
	return fairqueue.New(workqueue.NewTypedItemExponentialFailureRateLimiter[string](first, last))
}

// Actions hold the keys of objects that need HTCondor. A key may wait in more than one of the queues, since decisions
// about it change. A worker claims it while acting on it: another worker that finds it claimed may drop it, because the
// claimant queues it for sync afterwards.
type Actions struct {
	fairqueue.Claims
	Queues [Classes]fairqueue.Queue
}

// Add queues a key.
func (a *Actions) Add(c Class, key string) { a.Queues[c].Add(key) }

// Forget resets the back-off of a key.
func (a *Actions) Forget(key string) {
	for _, queue := range a.Queues {
		queue.Forget(key)
	}
}
