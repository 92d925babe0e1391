package job

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// effective returns what holds for an attempt by a pool, as the spec is now; only the pool's name if it could not be sent.
func (c *Controller) effective(job *v1alpha1.HTCJob, p pool.Pool, attempt int) *v1alpha1.Effective {
	sandbox, _ := c.Site.Render(job, p, attempt, nil)
	return p.Effective(sandbox.Requests)
}

// PoolChanged lets those HTCJobs continue that wait for a pool, and looks again at those that it keeps; nil: it was not, or is
// no longer, there. Both are nil if namespaces' labels have changed.
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

// accountOf returns the account whose credentials an HTCJob is sent with.
func (c *Controller) accountOf(job *v1alpha1.HTCJob) backend.Account {
	return c.pools.Presumed(job).Account(job)
}

// choose returns where an attempt that begins now goes and the identity it is sent with.
func (c *Controller) choose(ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool) (backend.Target, schedd.Identity, error) {
	t, err := p.Target(job, c.Site.Policy)
	if err != nil {
		return t, schedd.Identity{}, err
	}
	if schedds := p.Choice(job); len(schedds) > 0 {
		return c.Several.Choose(ctx, t, schedds, job.Jobs())
	}
	return c.Chooser.Choose(ctx, t)
}

// nextEndpoint returns where the next attempt of an HTCJob goes, as far as that is known.
func (c *Controller) nextEndpoint(job *v1alpha1.HTCJob) schedd.Endpoint {
	p := c.pools.Presumed(job)
	if schedds := p.Choice(job); len(schedds) > 0 {
		return c.Several.Last(schedds)
	}
	t, err := p.Target(job, c.Site.Policy)
	if err != nil || t.Endpoint.Schedd == "" {
		return c.Chooser.Usual(t.Namespace)
	}
	return t.Endpoint
}

// endpointOf returns the schedd that an HTCJob depends on at present: that of its run or of its next attempt.
func (c *Controller) endpointOf(s lifecycle.Situation, d lifecycle.Decision, b *reconciler.Blocker) schedd.Endpoint {
	switch {
	case s.Run != nil && s.Run.Schedd != "" && d.Action != lifecycle.Submit:
		return backend.TargetOf(*s.Run).Endpoint
	case b != nil && b.Condition == v1alpha1.ConditionBackendReachable:
		return b.Endpoint
	}
	return c.nextEndpoint(s.Job)
}

// questioner returns the identity, with the endpoint, used to ask about the runs of a target.
func (c *Controller) questioner(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	return backend.Questioner(ctx, c.Credentials, t)
}

// endpointTurned queues every HTCJob that may depend on an endpoint.
func (c *Controller) endpointTurned(endpoint schedd.Endpoint, answers bool) {
	if answers {
		// HTCJobs that could not even find out which schedd to ask may find out now.
		c.retryNow(func(t reconciler.Blocker) bool {
			return t.Condition == v1alpha1.ConditionBackendReachable && (t.Endpoint == endpoint || t.Endpoint == schedd.Endpoint{})
		})
	}
	c.WakeAll()
}
