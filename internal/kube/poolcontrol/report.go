package poolcontrol

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/notify/traces"
)

// Load says how full a pool was a second ago, for metrics.
type Load struct {
	Pool string
	admission.Load
	MaxOpen int    // 0: no limit
	Blocked string // the reason of the condition Accepting if that is not True
}

// Loads returns that of every pool, sorted by name.
func (c *Controller) Loads() (loads []Load) {
	for _, p := range c.All() {
		if load := c.Memory.Of(p.Name).Kind; load.Pool != "" {
			loads = append(loads, load)
		}
	}
	slices.SortFunc(loads, func(a, b Load) int { return cmp.Compare(a.Pool, b.Pool) })
	return loads
}

// kind tells the reconciler what is particular to HTCPools.
type kind struct{ *Controller }

// Seen implements reconciler.Kind, as do the methods below.
func (kind) Seen(_, _ *v1alpha1.HTCPool) {}

func (kind) Ended(*v1alpha1.HTCPool) bool { return false }

// Gather reads what the status of a pool is made of.
func (k kind) Gather(
	ctx context.Context, p *v1alpha1.HTCPool,
) (reconciler.Case[*v1alpha1.HTCPool, v1alpha1.HTCPoolStatus], error) {
	v := view{now: k.Now(), schedds: k.reach(p.Spec), wrong: k.Check(p)}
	if first := k.Pools.Default(); first != nil {
		v.inUse = first.Name
	}
	var err error
	if v.load, err = k.Jobs.PoolLoad(ctx, p.Name); err != nil {
		return nil, err
	}
	load := Load{Pool: p.Name, Load: v.load, MaxOpen: maxOpen(p)}
	if is, reason, _ := accepting(p, v); is != metav1.ConditionTrue {
		load.Blocked = reason
	}
	k.Memory.Change(p.Name, func(known *reconciler.Record[Load]) { known.Kind = load })
	return current{p, v}, nil
}

// current is a pool as it was gathered. What is to be done in HTCondor follows from the ledger alone: see follow.
type current struct {
	pool *v1alpha1.HTCPool
	v    view
}

// Step implements reconciler.Case, as do the methods below.
func (current) Step() reconciler.Step { return reconciler.Step{} }

func (current) Follow(context.Context) error { return nil }

func (c current) Object() (*v1alpha1.HTCPool, v1alpha1.HTCPoolStatus) { return c.pool, c.pool.Status }

func (c current) Status(reconciler.Blockers, time.Time) v1alpha1.HTCPoolStatus {
	return newStatus(c.pool, c.v)
}

func (current) Delay(_, _ v1alpha1.HTCPoolStatus) (pause time.Duration, worth bool) { return 0, true }

func (current) Events(_, _ v1alpha1.HTCPoolStatus) []lifecycle.Event { return nil }

func (current) Trace(_, _ v1alpha1.HTCPoolStatus, _ reconciler.Handed) *traces.Trace { return nil }

func (current) Expiry() (at time.Time, why string) { return at, "" }

func maxOpen(p *v1alpha1.HTCPool) int {
	if l := p.Spec.Limits; l != nil && l.MaxOpen != nil {
		return int(*l.MaxOpen)
	}
	return 0
}
