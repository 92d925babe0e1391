package poolcontrol

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
)

// Load says how full a pool was a second ago, for metrics.
type Load struct {
	Pool string
	admission.Load
	MaxOpen int    // 0: no limit
	Blocked string // the reason of the condition Accepting if that is not True
}

// Loads returns that of every pool, sorted by name.
func (c *Controller) Loads() []Load {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loads
}

// written is a status that the informer may not have seen yet.
type written struct {
	version string // of the object before
	status  v1alpha1.HTCPoolStatus
}

// report writes the statuses that have changed.
func (c *Controller) report(ctx context.Context, _ bool) {
	var loads []Load
	next := map[types.UID]written{}
	pools := slices.SortedFunc(
		slices.Values(c.Pools.List()),
		func(a, b *v1alpha1.HTCPool) int { return cmp.Compare(a.Name, b.Name) },
	)
	for _, p := range pools {
		v, err := c.view(ctx, p)
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Debug().Err(err).Str("pool", p.Name).Msg("its status is not known")
			}
			continue
		}
		was := p
		if w, is := c.written[p.UID]; is && w.version == p.ResourceVersion {
			was = p.DeepCopy()
			was.Status = w.status
			next[p.UID] = w
		}
		status := newStatus(was, v)
		l := Load{Pool: p.Name, Load: v.load, MaxOpen: maxOpen(p)}
		if is, reason, _ := accepting(p, v); is != metav1.ConditionTrue {
			l.Blocked = reason
		}
		loads = append(loads, l)
		if equality.Semantic.DeepEqual(status, was.Status) {
			continue
		}
		switch _, err := c.Objects.SetStatus(ctx, p, status); {
		case err == nil:
			next[p.UID] = written{p.ResourceVersion, status}
		case ctx.Err() == nil && !apierrors.IsNotFound(err):
			c.Log.Warn().Err(err).Str("pool", p.Name).Msg("status of the pool not written, trying again")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written, c.loads = next, loads
}

func maxOpen(p *v1alpha1.HTCPool) int {
	if l := p.Spec.Limits; l != nil && l.MaxOpen != nil {
		return int(*l.MaxOpen)
	}
	return 0
}

// view gathers what the status of a pool is made of.
func (c *Controller) view(ctx context.Context, p *v1alpha1.HTCPool) (view, error) {
	v := view{now: c.Now(), schedds: c.reach(p.Spec), wrong: c.Check(p)}
	if first := c.Pools.Default(); first != nil {
		v.inUse = first.Name
	}
	var err error
	v.load, err = c.Jobs.PoolLoad(ctx, p.Name)
	return v, err
}
