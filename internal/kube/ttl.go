package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// patienceForOutput is how long an HTCJob outlives its time while its output is still to be fetched.
const patienceForOutput = time.Hour

// expiry returns when an HTCJob that has ended is to be deleted, the zero time when it is kept.
func expiry(s situation) time.Time {
	run, ttl := s.run, s.job.Spec.TTLSecondsAfterFinished
	if !over(s) || run.Ended.IsZero() || ttl == nil || s.job.DeletionTimestamp != nil || due(s) {
		return time.Time{}
	}
	at := after(run.Ended, int64(*ttl))
	if s.unfetched {
		at = at.Add(patienceForOutput)
	}
	return at
}

// expire deletes an HTCJob whose time is over, exactly as it was when that was decided: an edit that came first, such as one
// that runs it again, keeps it.
func (c *Controller) expire(ctx context.Context, job *v1alpha1.HTCJob) error {
	c.Events.Normal(job, "Expired", fmt.Sprintf("deleted %s after its end (spec.ttlSecondsAfterFinished)",
		plural(int(*job.Spec.TTLSecondsAfterFinished), "second")))
	err := c.Objects.Delete(ctx, job)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another look follows
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
