package workflow

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

// poolOf returns the pool by which a DAG is sent: further DAGs of an attempt by that of its first, as it was then.
func (c *Controller) poolOf(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation) (p pool.Pool, err error) {
	if len(s.DAGs) == 0 || s.due() || s.DAGs[0].Run.PoolSpec == "" && s.DAGs[0].Run.Pool != "" {
		return c.pools.New(asJob(w))
	}
	return ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (pool.Pool, error) {
		return c.pools.Began(tx, asJob(w), s.DAGs[0].Run)
	})
}

// poolWorks returns an *admission.Waits while a pool's state keeps back what has not been sent, or its limits leave no
// room for a single node. A workflow waits in no line: it asks again.
func (c *Controller) poolWorks(ctx context.Context, p pool.Pool, namespace string) error {
	r := c.RulesOf(p.Name)
	if r.None() {
		return nil
	}
	u, err := c.usage(ctx, r)
	if err != nil {
		return err
	}
	switch a := r.Decide(u, namespace, admission.Demand{Jobs: 1, Cores: 1, Memory: 1}, c.Now()); a.Why {
	case admission.Draining:
		return &admission.Waits{Reason: admission.ReasonPoolDraining, Message: stateMessage(r)}
	case admission.Suspended:
		return &admission.Waits{Reason: admission.ReasonPoolSuspended, Message: stateMessage(r)}
	case admission.Limited:
		if p.None() {
			return &admission.Waits{Reason: admission.ReasonNamespaceLimit, Message: a.Full}
		}
		return &admission.Waits{Reason: admission.ReasonPoolLimit, Message: fmt.Sprintf("pool %s: %s", p.Name, a.Full)}
	}
	return nil
}

func stateMessage(r admission.Rules) string {
	return fmt.Sprintf("HTCPool %s is %s: nothing new is sent until it is Online", r.Pool, r.State)
}

// usage adds up what is in use of a pool.
func (c *Controller) usage(ctx context.Context, r admission.Rules) (u admission.Usage, err error) {
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		if u, err = admission.ReadUsage(tx, r); err != nil || r.Limits.NewPerMinute == nil {
			return err
		}
		sent, err := tx.SentSince(c.Now().Add(-time.Minute))
		for _, s := range sent {
			if s.Pool == r.Pool {
				u.Sent = append(u.Sent, admission.Sent{At: s.At, Jobs: s.Procs})
			}
		}
		return err
	})
	return u, err
}

// fits refuses a workflow with more nodes than its pool, or the site, allows.
func (c *Controller) fits(p prepared) error {
	rules := c.RulesOf(p.pool.Name)
	if err := c.fitsNodes(p); err != nil {
		return err
	}
	steps, _ := p.rows()
	for _, step := range steps {
		each := admission.DemandOf(1, pool.ReadEffective(p.pool.Name, step.Effective))
		if err := cmp.Or(rules.RefuseUncounted(each), rules.RefuseRequest(each)); err != nil {
			return condor.Refusal("step %s: %w", step.Name, err)
		}
	}
	return nil
}

// fitsNodes refuses more nodes than the pool lets a workflow have.
func (c *Controller) fitsNodes(p prepared) error {
	nodes := 0
	for _, n := range p.graph.Totals(max(len(p.sequences), p.mayBegin)) {
		nodes += n
	}
	return c.RulesOf(p.pool.Name).RefuseNodes(nodes)
}

// atOnce returns how many nodes of a DAG with these steps may be in the queue, as far as the pool bounds what they ask
// for together.
func (c *Controller) atOnce(most int, by pool.Pool, steps []ledger.Step) int {
	rules := c.RulesOf(by.Name)
	for _, step := range steps {
		if n := rules.AtOnce(admission.DemandOf(1, pool.ReadEffective(by.Name, step.Effective))); n > 0 {
			most = min(cmp.Or(most, n), n)
		}
	}
	return most
}

// throttled has DAGMan keep to the limits that the pool has now, of each DAG for itself, and to the quota.
func (c *Controller) throttled(d submit.DAG, by pool.Pool, s Situation) submit.DAG {
	l := c.RulesOf(by.Name).Limits
	d.MaxIdle, d.MaxJobs = least(d.MaxIdle, l.MaxIdle), leastOpen(d.MaxJobs, l)
	if q := s.Quota; q != nil && q.Most > 0 {
		d.MaxJobs = least(d.MaxJobs, new(int32(q.Most)))
	}
	if p := l.IdlePercentOfRunning; p != nil {
		d.MaxIdle = least(d.MaxIdle, p.Max)
	}
	if l.NewPerMinute != nil {
		d.Pace = pace(int(*l.NewPerMinute))
	}
	return d
}

// pace returns how many nodes are sent at a time, and how often, so that there are at most so many in a minute, and not
// many fewer. Longer pauses delay what waits for a parent's end: they are 10 seconds at most, unless only longer ones
// keep to it.
func pace(perMinute int) (best submit.Pace) {
	const minute, longest = 60, 10
	if perMinute*longest < minute {
		return submit.Pace{Nodes: 1, Seconds: (minute + perMinute - 1) / perMinute}
	}
	if perMinute >= minute*dagmansPace {
		return best // DAGMan is slower by itself
	}
	for seconds := 1; seconds <= longest && 20*minute*best.Nodes < 19*perMinute*max(best.Seconds, 1); seconds++ {
		p := submit.Pace{Nodes: perMinute * seconds / minute, Seconds: seconds}
		if p.Nodes*max(best.Seconds, 1) > best.Nodes*p.Seconds {
			best = p
		}
	}
	return best
}

// dagmansPace is how many nodes DAGMan sends in a second at most, DAGMAN_MAX_SUBMITS_PER_INTERVAL.
const dagmansPace = 100

// leastOpen returns how many nodes of a DAG may be in the queue.
func leastOpen(throttle int, l v1alpha1.PoolLimits) int {
	return least(least(throttle, l.MaxOpen), l.MaxOpenPerNamespace)
}

// least returns the smaller of a throttle, 0 for none, and a limit. DAGMan has no throttle of 0.
func least(throttle int, limit *int32) int {
	if limit == nil {
		return throttle
	}
	most := max(int(*limit), 1)
	return min(cmp.Or(throttle, most), most)
}

// PoolChanged continues with what waits for a pool, and looks again at what has ended if the pool says how long that is
// kept; nil: it was not, or is no longer, there.
func (c *Controller) PoolChanged(before, now *v1alpha1.HTCPool) {
	c.RetryAll(func(b reconciler.Blocker) bool { return pool.Waits(b.Reason) || admission.InLine(b.Reason) })
	if before != nil && now != nil && !equality.Semantic.DeepEqual(before.Spec.Keep, now.Spec.Keep) {
		c.Wake(func(w *v1alpha1.HTCWorkflow) bool {
			return w.Status.Phase.Terminal() && w.Spec.TTLSecondsAfterFinished == nil
		})
	}
}
