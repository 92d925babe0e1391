package job

import (
	"context"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
)

// reconcileOrphans lists the orphans that are kept, and releases them for removal if that was requested.
func (c *Controller) reconcileOrphans(
	ctx context.Context,
	o ReconcileOptions,
	found func(crosscheck.Difference),
) error {
	kept, differences, err := c.Orphans.Reconcile(ctx, o.Orphans())
	if err != nil {
		return err
	}
	if o.RemoveOrphans && !o.DryRun {
		for _, run := range kept {
			c.Changed.Add(run.Namespace + "/" + run.Name)
		}
		c.retryNow(func(t reconciler.Blocker) bool { return t.Reason == sending.ReasonOrphansKept })
	}
	for _, d := range differences {
		found(d)
	}
	return nil
}

// Orphans returns what of it is about objects that have vanished.
func (o ReconcileOptions) Orphans() orphans.Scope {
	return orphans.Scope{Namespace: o.Namespace, Name: o.Name, DryRun: o.DryRun, Remove: o.RemoveOrphans}
}
