package kube

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// The ledger may be older than what was done with it: somebody has put back a backup of its volume. Then the object's
// status and the schedd's tags stand above it, as they do where the ledger is lost.

// ahead reports whether a status knows more of what was sent than the ledger, whose newest run is given. The ledger is
// written first, so that can only be where an older one was put back.
func ahead(status v1alpha1.HTCJobStatus, run ledger.Run) bool {
	attempt := int(status.Attempt)
	return attempt > run.Attempt || attempt == run.Attempt && run.State == ledger.Intent && toldApart(status)
}

// forgotten reports whether the ledger has nothing, or not the newest, of what may have been sent for an HTCJob.
func forgotten(job *v1alpha1.HTCJob, own []ledger.Run) bool {
	return len(own) == 0 || ahead(job.Status, own[len(own)-1])
}

// sentLater asks whether the schedd has a later attempt than the newest that the ledger knows. What this process has begun
// itself is in the ledger; of what it has found there, later attempts may be missing.
func (c *Controller) sentLater(ctx context.Context, job *v1alpha1.HTCJob, t backend.Target, id schedd.Identity, newest *ledger.Run) (bool, error) {
	if newest == nil || !newest.Created.Before(c.began) {
		return false, nil
	}
	queued, left, err := c.find(ctx, id, schedd.LaterConstraint(newest.UID, newest.Attempt), "")
	if err != nil {
		return false, fmt.Errorf("look for attempts after %d: %w", newest.Attempt, err)
	}
	queued, left, _, err = c.owners.Own(ctx, t, id, queued, left)
	if err != nil {
		return false, fmt.Errorf("look whose the jobs after attempt %d are: %w", newest.Attempt, err)
	}
	return len(queued)+len(left) > 0, nil
}
