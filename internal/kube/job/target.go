package job

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// effective returns what holds for an attempt by a pool, as the spec is now; only the pool's name if it could not be
// sent.
func (c *Controller) effective(job *v1alpha1.HTCJob, p pool.Pool, attempt int) *v1alpha1.Effective {
	sandbox, _ := c.Site.Render(job, p, attempt, nil)
	return p.Effective(sandbox.Requests)
}

// PoolChanged lets those HTCJobs continue that wait for a pool, and looks again at those that it keeps; nil: it was
// not, or is no longer, there. Both are nil if namespaces' labels have changed.
func (c *Controller) PoolChanged(before, now *v1alpha1.HTCPool) {
	c.retryNow(func(b reconciler.Blocker) bool { return pool.Waits(b.Reason) })
	c.poolChanged(before, now)
	if before == nil || now == nil || equality.Semantic.DeepEqual(before.Spec.Keep, now.Spec.Keep) {
		return
	}
	c.Wake(func(job *v1alpha1.HTCJob) bool {
		return job.Status.Effective != nil && job.Status.Effective.Pool == now.Name
	})
}

// endpointOf returns the schedd that an HTCJob depends on at present: that of its run or of its next attempt.
func (c *Controller) endpointOf(s lifecycle.Situation, d lifecycle.Decision, b *reconciler.Blocker) schedd.Endpoint {
	switch {
	case s.Run != nil && s.Run.Schedd != "" && d.Action != lifecycle.Submit:
		return backend.TargetOf(*s.Run).Endpoint
	case b != nil && b.Condition == v1alpha1.ConditionBackendReachable:
		return b.Endpoint
	}
	return c.NextEndpoint(s.Job)
}

// endpointTurned continues with what may depend on an endpoint, fetches included.
func (c *Controller) endpointTurned(endpoint schedd.Endpoint, answers bool) {
	if answers {
		c.retryFetches()
	}
	c.EndpointTurned(endpoint, answers)
}

// LedgerBack continues with what waits for a ledger that can be written again, fetches included.
func (c *Controller) LedgerBack() { c.retryNow(reconciler.NeedsLedger) }
