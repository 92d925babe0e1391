package workflow

import (
	"context"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
)

// kind tells the reconciler what is particular to HTCWorkflows.
type kind struct{ *Controller }

// AsJob implements reconciler.Owned, as do the methods below reconciler.Kind.
func (kind) AsJob(w *v1alpha1.HTCWorkflow) *v1alpha1.HTCJob { return asJob(w) }

func (kind) Gone(string) {}

func (k kind) Seen(before, now *v1alpha1.HTCWorkflow) {
	reconciler.Outdate(k.engine, before, now)
	if now == nil {
		k.SecretTouched(before.Namespace)
	}
}

func (kind) Ended(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase.Terminal() }

func (kind) Acted(string, error) (woken bool) { return false }

// classOf returns the class of an action.
func classOf(a Action) reconciler.Class {
	switch a {
	case Submit:
		return reconciler.Submitting
	case Stop, Resize:
		return reconciler.Removing
	case Remove:
		return reconciler.Deleting
	}
	return reconciler.Asking
}

// do carries out a decision.
func (c *Controller) do(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation, d Decision) error {
	switch d.Action {
	case Submit:
		return c.submit(ctx, w, s, d)
	case Recover:
		return c.recover(ctx, w, s)
	case Stop:
		return c.stop(ctx, w, s, d)
	case Resize:
		return c.resize(ctx, w, s)
	case Settle:
		d := s.newest()
		return c.settle(ctx, d.Run, d.Run.Stop == "" && (d.Job == nil || d.Job.ExitCode == nil))
	case Remove:
		return reconciler.Finalize(ctx, c.engine, w)
	}
	return nil
}
