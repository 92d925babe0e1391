package reconciler

import (
	"maps"
	"time"
)

// Handed is when condor_submit began, by the numbers of runs.
type Handed map[int]time.Time

// Hands notes that condor_submit begins for a run, if traces are wanted, and returns the time.
func (r *Reconciler[O, S, K]) Hands(key string, run int) time.Time {
	now := r.o.Now()
	if r.o.Traced != nil {
		r.Memory.Change(key, func(known *Record[K]) {
			all := maps.Clone(known.Handed) // others read it
			if all == nil {
				all = Handed{}
			}
			all[run], known.Handed = now, all
		})
	}
	return now
}

// traced hands over the trace of an attempt that has ended between two statuses.
func (r *Reconciler[O, S, K]) traced(key string, c Case[O, S], before, after S) {
	if r.o.Traced == nil {
		return
	}
	if t := c.Trace(before, after, r.Memory.Of(key).Handed); t != nil {
		r.o.Traced(*t)
		r.Memory.Change(key, func(known *Record[K]) { known.Handed = nil })
	}
}
