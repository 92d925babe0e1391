package reconciler

import "time"

// How long a submission waits at most for the statuses of what has ended, and how often it looks: a burst of
// submissions would take the CPU that these need, in htcd as in the apiserver. What cannot be written is in a back-off
// and is not waited for.
const (
	mostYielded  = time.Second
	betweenLooks = 10 * time.Millisecond
)

// endsFirst returns when no end waits for its status.
func (r *Reconciler[O, K]) endsFirst() {
	for range mostYielded / betweenLooks {
		if r.Ended.Len() == 0 {
			return
		}
		time.Sleep(betweenLooks)
	}
}
