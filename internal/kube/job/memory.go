package job

import (
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// record is what is known of an HTCJob besides the ledger.
type record = reconciler.Record[remembered]

// remembered is the part of it that only HTCJobs have.
type remembered struct {
	logs *lifecycle.LogsOutcome // of the last try to leave its Pod
	told int                    // ends of its factory's jobs since HTCondor was asked because of such
}

// tried records the outcome of a try to leave a Pod and reports whether it differs from the previous one; nil forgets
// it.
func (c *Controller) tried(key string, outcome *lifecycle.LogsOutcome) (news bool) {
	c.Memory.Change(key, func(r *record) {
		news = outcome != nil && (r.Kind.logs == nil || *r.Kind.logs != *outcome)
		r.Kind.logs = outcome
	})
	return news
}

// toldMany counts the end of a factory's job and reports whether HTCondor is to be asked: until it has confirmed them,
// the jobs stay in the queue, and no others are made in their places.
func (c *Controller) toldMany(key string, atOnce int) (many bool) {
	c.Memory.Change(key, func(r *record) {
		r.Kind.told++
		if many = r.Kind.told >= max(1, min(atOnce, submit.IdleAtOnce)/4); many {
			r.Kind.told = 0
		}
	})
	return many
}
