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
