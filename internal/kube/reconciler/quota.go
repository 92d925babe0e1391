package reconciler

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// Quota is a quota outside of htcd, before the limits of pools: what is subject to it is sent, or enters the line of
// its pool, once it has consent. What is not an HTCJob is described to it as the HTCJob that asks for as much, of the
// kind that it is.
type Quota interface {
	// Of returns its word, nil about what is subject to none. It does no I/O.
	Of(job *v1alpha1.HTCJob, demand func() lifecycle.Demand) *lifecycle.Quota
	// Keep has it know what is needed, and what is needed no more.
	Keep(ctx context.Context, job *v1alpha1.HTCJob, d lifecycle.Demand) error
}

// QuotaOf returns the word of the quota, nil if there is none.
func (c Common) QuotaOf(job *v1alpha1.HTCJob, demand func() lifecycle.Demand) *lifecycle.Quota {
	if c.Quota == nil {
		return nil
	}
	return c.Quota.Of(job, demand)
}

// KeepQuota has the quota know what is needed.
func (c Common) KeepQuota(ctx context.Context, job *v1alpha1.HTCJob, demand func() lifecycle.Demand) error {
	if c.Quota == nil || job.DeletionTimestamp != nil {
		return nil
	}
	if err := c.Quota.Keep(ctx, job, demand()); err != nil {
		return fmt.Errorf("keep its quota: %w", err)
	}
	return nil
}

// QuotaChanged has an object looked at again whose quota may have changed; without a key all that have not ended.
func (r *Reconciler[O, S, K]) QuotaChanged(key string) {
	if key == "" {
		r.WakeAll()
		return
	}
	r.Changed.Add(key)
}
