package job

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

func (c *Controller) newAdmission() *admission.Admission {
	return &admission.Admission{
		Rules: c.RulesOf, Usage: c.usage, Recent: c.recent, Now: c.Now,
		Go:    func(key string) { c.Actions.Forget(key); c.Actions.Add(reconciler.Submitting, key) },
		Tell:  c.tellPlace,
		Later: func(pool string, after time.Duration) { c.turns.AddAfter(pool, after) },
	}
}

// usage adds up what is in use of a pool.
func (c *Controller) usage(ctx context.Context, name string) (u admission.Usage, err error) {
	return ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (admission.Usage, error) {
		return admission.ReadUsage(tx, c.RulesOf(name))
	})
}

// recent returns, by pool, what was sent shortly before htcd began.
func (c *Controller) recent(ctx context.Context) (map[string][]admission.Sent, error) {
	recent := map[string][]admission.Sent{}
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		all, err := tx.SentSince(c.Now().Add(-time.Minute))
		for _, s := range all {
			if s.At.Before(c.began) {
				recent[s.Pool] = append(recent[s.Pool], admission.Sent{At: s.At, Jobs: s.Procs})
			}
		}
		return err
	})
	return recent, err
}

// admit returns nil if an attempt may be sent, as far as its pool's limits and state are concerned.
func (c *Controller) admit(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run) error {
	return c.admission.Ask(ctx, run.Pool, waiter(job, demandOf(run, run.Procs)))
}

// demandOf returns what a run of so many procs asks for.
func demandOf(run ledger.Run, procs int) admission.Demand {
	d := admission.DemandOf(submit.Sends(procs, run.Factory), pool.ReadEffective(run.Pool, run.Effective))
	if run.Factory > 0 {
		d.Made = procs
	}
	return d
}

// presumed is the demand of an HTCJob that sends so many jobs, 0 if that is not known yet.
func (c *Controller) presumed(job *v1alpha1.HTCJob, n int) admission.Demand {
	if n > 0 && site.AtOnce(job.Spec, n, c.Site.FactoryAbove) > 0 {
		return admission.Demand{Jobs: 1, Made: n}
	}
	return admission.Demand{Jobs: n}
}

// firstShare sets what the factory of a run begins with: if its pool bounds how many jobs it may have, with one, which
// is what the pool was asked for. More are granted once it is there.
func (c *Controller) firstShare(
	job *v1alpha1.HTCJob,
	run *ledger.Run,
	sandbox submit.Sandbox,
) submit.Sandbox {
	if sandbox.Factory == 0 {
		return sandbox
	}
	run.Procs, run.Factory = sandbox.Procs, sandbox.Factory
	s := lifecycle.Situation{Job: job, Run: run}
	if c.RulesOf(run.Pool).Shares() {
		s.Pool = &admission.Share{Open: 1, Idle: 1}
	}
	now := s.Parallelism()
	run.Factory, run.FactoryIdle = now.Open, now.Idle
	return sandbox.AtMost(now.Open, now.Idle)
}

// inLine returns an error while an HTCJob has to wait in the line of its pool, so that nothing else is done for it
// meanwhile.
func (c *Controller) inLine(ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool, some part) error {
	if !c.admission.Waits(job.Namespace + "/" + job.Name) {
		return nil
	}
	n := job.Queue()
	if some.base != nil {
		n = some.numbers.Len()
	}
	return c.admission.Ask(ctx, p.Name, waiter(job, c.presumed(job, n)))
}

func waiter(job *v1alpha1.HTCJob, d admission.Demand) admission.Waiter {
	w := admission.Waiter{
		Key:       job.Namespace + "/" + job.Name,
		Namespace: job.Namespace,
		Demand:    d,
		Created:   job.CreationTimestamp.Time,
	}
	if job.Spec.Priority != nil {
		w.Priority = *job.Spec.Priority
	}
	return w
}

// recallLine puts those into their places that waited before a restart.
func (c *Controller) recallLine() {
	for _, job := range c.All() {
		if !admission.InLine(job.Status.Reason) || job.DeletionTimestamp != nil {
			continue
		}
		n := job.Queue()
		if job.Status.Attempt > 0 { // the next one may send only some of its jobs
			n = 0
		}
		if p, err := pool.Choose(job, c.Pools); err == nil {
			c.admission.Recall(p.Name, waiter(job, c.presumed(job, n)))
		}
	}
}

// poolChanged makes a pass of a pool that has changed. If HTCJobs may use another pool now, all that wait ask again.
func (c *Controller) poolChanged(before, now *v1alpha1.HTCPool) {
	if before == nil || now == nil || before.Spec.Default != now.Spec.Default ||
		!equality.Semantic.DeepEqual(before.Spec.NamespaceSelector, now.Spec.NamespaceSelector) {
		c.retryNow(func(b reconciler.Blocker) bool { return admission.InLine(b.Reason) })
	}
	if now != nil {
		c.turns.Add(now.Name)
	}
}

// turn makes a pass of a pool.
func (c *Controller) turn(ctx context.Context, name string) {
	if err := c.admission.Pass(ctx, name); err != nil {
		c.Log.Warn().Err(err).Str("pool", name).Msg("nothing can be sent, trying again")
		c.turns.AddAfter(name, reconciler.FirstRetry)
	}
}

// tellPlace shows what an HTCJob waits for now.
func (c *Controller) tellPlace(key string, what *admission.Waits) {
	c.Memory.Change(key, func(r *record) {
		if b := r.Blockers[reconciler.Acting]; b != nil && admission.InLine(b.Reason) {
			now := *b
			now.Reason, now.Message = what.Reason, what.Message
			r.Blockers[reconciler.Acting] = &now
		}
	})
	c.Routine.Add(key)
}

// PoolLoad returns how full a pool is, and why nothing is sent by way of it at present. HTCJobs that its schedd refuses
// for now have left the line.
func (c *Controller) PoolLoad(ctx context.Context, name string) (admission.Load, error) {
	load, err := c.admission.Load(ctx, name)
	if err != nil {
		return load, err
	}
	for key := range c.Memory.Blocked(reconciler.Acting, reconciler.AtLimit) {
		if job := c.Get(key); job != nil && c.pools.Presumed(job).Name == name {
			load.Waits(job.Namespace)
		}
	}
	return load, nil
}
