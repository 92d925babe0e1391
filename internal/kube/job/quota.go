package job

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// Quota is a quota outside of htcd, before the limits of pools: an HTCJob that is subject to it enters the line of its
// pool once it has consent.
type Quota interface {
	// Of returns its word about an HTCJob, nil if that is subject to none. It does no I/O.
	Of(s lifecycle.Situation) *lifecycle.Quota
	// Keep has it know what an HTCJob needs, and what it needs no more.
	Keep(ctx context.Context, s lifecycle.Situation) error
}

func (c *Controller) quotaOf(s lifecycle.Situation) *lifecycle.Quota {
	if c.Quota == nil {
		return nil
	}
	return c.Quota.Of(s)
}

func (c *Controller) keepQuota(ctx context.Context, s lifecycle.Situation) error {
	if c.Quota == nil || s.Job.DeletionTimestamp != nil {
		return nil
	}
	if err := c.Quota.Keep(ctx, s); err != nil {
		return fmt.Errorf("keep its quota: %w", err)
	}
	return nil
}

// QuotaChanged has HTCJobs looked at again whose quota may have changed; without a key all that have not ended.
func (c *Controller) QuotaChanged(key string) {
	if key == "" {
		c.WakeAll()
		return
	}
	c.Changed.Add(key)
}
