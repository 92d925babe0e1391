package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/lifecycle"
)

// expire deletes an HTCJob whose time is over, exactly as it was when that was decided: an edit that came first, such as one
// that runs it again, keeps it.
func (c *Controller) expire(ctx context.Context, job *v1alpha1.HTCJob) error {
	c.Events.Normal(job, "Expired", fmt.Sprintf("deleted %s after its end (spec.ttlSecondsAfterFinished)",
		lifecycle.Plural(int(*job.Spec.TTLSecondsAfterFinished), "second")))
	err := c.Objects.Delete(ctx, job)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another look follows
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
