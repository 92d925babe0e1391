package workflow

import (
	"fmt"

	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/pool"
)

// poolWorks returns an *admission.Waits while the state of a pool keeps back what has not been sent.
func (c *Controller) poolWorks(p pool.Pool) error {
	if p.None() || c.Pools == nil {
		return nil
	}
	now := c.Pools.Get(p.Name)
	if now == nil {
		return nil
	}
	reason := map[v1alpha1.PoolState]string{v1alpha1.PoolDraining: admission.ReasonPoolDraining, v1alpha1.PoolSuspended: admission.ReasonPoolSuspended}[now.Spec.State]
	if reason == "" {
		return nil
	}
	return &admission.Waits{Reason: reason, Message: fmt.Sprintf("HTCPool %s is %s: nothing new is sent until it is Online", p.Name, now.Spec.State)}
}

// fits refuses a workflow with more nodes than its pool, or the site, allows.
func (c *Controller) fits(p prepared) error {
	r := admission.Rules{Pool: p.pool.Name}
	if p.pool.None() {
		if most := c.Site.MaxQueue; most > 0 {
			r.Limits.MaxQueue = new(int32(most)) // #nosec G115 -- options.go bounds it
		}
	} else if c.Pools != nil {
		if now := c.Pools.Get(p.pool.Name); now != nil && now.Spec.Limits != nil {
			r.Limits = *now.Spec.Limits
		}
	}
	nodes := 0
	for _, n := range p.graph.Totals(len(p.sequences)) {
		nodes += n
	}
	return r.RefuseNodes(nodes)
}

// PoolChanged continues with what waits for a pool.
func (c *Controller) PoolChanged() {
	c.retryNow(func(b blocker) bool { return pool.Waits(b.Reason) || admission.InLine(b.Reason) })
}
