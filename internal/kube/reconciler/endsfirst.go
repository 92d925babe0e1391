package reconciler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// How long a submission waits at most for the statuses of what has ended, and how often it looks: a burst of
// submissions would take the CPU that these need, in htcd as in the apiserver. What cannot be written is in a back-off
// and is not waited for.
const (
	mostYielded  = time.Second
	betweenLooks = 10 * time.Millisecond
)

// tellers is how many workers tell of ends for each that tells of other changes: they mostly wait for the apiserver,
// and it divides its time by what is asked of it at once.
const tellers = 4

// News queues an object about which something was learned: that it has ended, or something else.
func (r *Reconciler[O, S, K]) News(key string, ended bool) {
	if ended {
		r.Ended.Add(key)
	} else {
		r.Changed.Add(key)
	}
}

// Counted queues an object of which counts have changed, when these may be written.
func (r *Reconciler[O, S, K]) Counted(key string) {
	r.Changed.AddAfter(key, r.Memory.UntilWrite(key, r.o.Now(), BetweenWrites))
}

// endsFirst returns when no end waits for its status or is being written, it has waited long enough, or ctx has ended.
func (r *Reconciler[O, S, K]) endsFirst(ctx context.Context) {
	none := func(context.Context) (bool, error) { return r.Ended.Len() == 0 && r.ending.Load() == 0, nil }
	_ = wait.PollUntilContextTimeout(ctx, betweenLooks, mostYielded, true, none) // one way or the other, it goes on
}
