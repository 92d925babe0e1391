package job

import (
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
)

// record is what is known of an HTCJob besides the ledger.
type record = reconciler.Record[remembered]

// remembered is the part of it that only HTCJobs have.
type remembered struct {
	logs *lifecycle.LogsOutcome // of the last try to leave its Pod
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
