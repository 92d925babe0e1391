package reconciler

import (
	"context"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/sending"
)

// ReconcileOrphans lists what is kept of objects that are gone, and releases it for removal if that was requested.
func (r *Reconciler[O, S, K]) ReconcileOrphans(ctx context.Context, s orphans.Scope) ([]crosscheck.Difference, error) {
	kept, differences, err := r.Orphans.Reconcile(ctx, s)
	if err == nil && s.Remove && !s.DryRun {
		for _, run := range kept {
			r.Changed.Add(run.Namespace + "/" + run.Name)
		}
		r.RetryAll(func(b Blocker) bool { return b.Reason == sending.ReasonOrphansKept })
	}
	return differences, err
}
