package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/pool"
	"htc.cern.ch/htcd/internal/schedd"
)

// newPool returns the pool that an attempt of an HTCJob is sent by that begins now.
func (c *Controller) newPool(job *v1alpha1.HTCJob) (pool.Pool, error) {
	p, err := pool.Choose(job, c.Pools)
	if err != nil || p.None() {
		return p, err
	}
	return p, pool.Check(p.Name, p.Spec, c.Site.PoolRules())
}

// PoolRules are those of htcd's settings that HTCPools must keep to.
func (s Site) PoolRules() pool.Rules {
	return pool.Rules{AllowOptions: s.AllowOptions, PoolSecrets: s.PoolSecrets}
}

// samePool returns the pool that a run is sent by again, as it was when the attempt began, unless that can no longer be used.
func (c *Controller) samePool(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run) (pool.Pool, error) {
	if run.SpecHash != job.SpecHash() || run.Pool != "" && run.PoolSpec == "" {
		return c.newPool(job)
	}
	p, err := c.recordedPool(ctx, run)
	if err == nil && pool.Check(p.Name, p.Spec, c.Site.PoolRules()) != nil {
		return c.newPool(job)
	}
	return p, err
}

// recordedPool returns the pool that a run was sent by, as it was then.
func (c *Controller) recordedPool(ctx context.Context, run ledger.Run) (p pool.Pool, err error) {
	if run.Pool == "" || run.PoolSpec == "" {
		return pool.Pool{}, nil
	}
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		spec, err := tx.PoolSpec(run.PoolSpec)
		if err == nil {
			p, err = pool.Read(run.Pool, spec)
		}
		return err
	})
	return p, err
}

// presumedPool returns the pool that an HTCJob was sent by, or will be, as far as that is known without the ledger.
func (c *Controller) presumedPool(job *v1alpha1.HTCJob) pool.Pool {
	if job.Status.Active > 0 {
		if job.Status.Effective == nil {
			return pool.Pool{}
		}
		if p, there := pool.Present(job.Status.Effective.Pool, c.Pools); there {
			return p
		}
	}
	p, _ := pool.Choose(job, c.Pools) // while none can be used, the flags are as good a guess as any
	return p
}

// lostPool is newPool for an attempt that the ledger has lost: by the status, if that names a pool that still exists.
func (c *Controller) lostPool(job *v1alpha1.HTCJob) (pool.Pool, error) {
	if e := job.Status.Effective; e != nil {
		if p, there := pool.Present(e.Pool, c.Pools); there {
			return p, nil
		}
	}
	return c.newPool(job)
}

// effective returns what holds for an attempt by a pool, as the spec is now; only the pool's name if it could not be sent.
func (c *Controller) effective(job *v1alpha1.HTCJob, p pool.Pool, attempt int) *v1alpha1.Effective {
	sandbox, _ := c.Site.render(job, p, attempt, nil)
	return p.Effective(sandbox.Requests)
}

// sentBy adds the pool to a run's row, with what holds for it.
func sentBy(run ledger.Run, p pool.Pool, e *v1alpha1.Effective) ledger.Run {
	run.Pool, run.Effective = p.Name, pool.Write(e)
	run.PoolSpec, _ = p.Snapshot()
	return run
}

// keepPool writes down the pool's spec for the runs that are sent by it.
func keepPool(tx *ledger.Tx, p pool.Pool) error {
	hash, spec := p.Snapshot()
	if hash == "" {
		return nil
	}
	return tx.KeepPoolSpec(hash, spec)
}

// keepOf returns how long the pool of a run keeps HTCJobs: as the pool is now, or if there is none of that name, as it was.
func (c *Controller) keepOf(tx *ledger.Tx, run ledger.Run) (*v1alpha1.PoolKeep, error) {
	p, there := pool.Present(run.Pool, c.Pools)
	if there || run.PoolSpec == "" || run.Ended.IsZero() {
		return p.Spec.Keep, nil
	}
	spec, err := tx.PoolSpec(run.PoolSpec)
	if err == nil {
		p, err = pool.Read(run.Pool, spec)
	}
	return p.Spec.Keep, err
}

// PoolChanged lets those HTCJobs continue that wait for a pool, and looks again at those that it keeps; nil: it was not, or is
// no longer, there. Both are nil if namespaces' labels have changed.
func (c *Controller) PoolChanged(before, now *v1alpha1.HTCPool) {
	c.retryNow(func(b blocker) bool { return pool.Waits(b.Reason) })
	c.poolChanged(before, now)
	if before == nil || now == nil || equality.Semantic.DeepEqual(before.Spec.Keep, now.Spec.Keep) {
		return
	}
	for _, object := range c.Informer.GetStore().List() {
		if job := object.(*v1alpha1.HTCJob); job.Status.Effective != nil && job.Status.Effective.Pool == now.Name {
			c.routine.Add(job.Namespace + "/" + job.Name)
		}
	}
}

// accountOf returns the account whose credentials an HTCJob is sent with.
func (c *Controller) accountOf(job *v1alpha1.HTCJob) backend.Account {
	return c.presumedPool(job).Account(job)
}

// choose returns where an attempt that begins now goes and the identity it is sent with.
func (c *Controller) choose(ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool) (backend.Target, schedd.Identity, error) {
	t, err := p.Target(job, c.Site.Policy)
	if err != nil {
		return t, schedd.Identity{}, err
	}
	if schedds := p.Choice(job); len(schedds) > 0 {
		return c.several.Choose(ctx, t, schedds, job.Jobs())
	}
	return c.chooser.Choose(ctx, t)
}

// nextEndpoint returns where the next attempt of an HTCJob goes, as far as that is known.
func (c *Controller) nextEndpoint(job *v1alpha1.HTCJob) schedd.Endpoint {
	p := c.presumedPool(job)
	if schedds := p.Choice(job); len(schedds) > 0 {
		return c.several.Last(schedds)
	}
	t, err := p.Target(job, c.Site.Policy)
	if err != nil || t.Endpoint.Schedd == "" {
		return c.chooser.Usual(t.Namespace)
	}
	return t.Endpoint
}

// endpointOf returns the schedd that an HTCJob depends on at present: that of its run or of its next attempt.
func (c *Controller) endpointOf(s lifecycle.Situation, d lifecycle.Decision, b *blocker) schedd.Endpoint {
	switch {
	case s.Run != nil && s.Run.Schedd != "" && d.Action != lifecycle.Submit:
		return backend.TargetOf(*s.Run).Endpoint
	case b != nil && b.Condition == v1alpha1.ConditionBackendReachable:
		return b.endpoint
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
		c.retryNow(func(t blocker) bool {
			return t.Condition == v1alpha1.ConditionBackendReachable && (t.endpoint == endpoint || t.endpoint == schedd.Endpoint{})
		})
	}
	c.wakeAll()
}
