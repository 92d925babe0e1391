package workflow

import (
	"context"
	"errors"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
)

// kind tells the reconciler what is particular to HTCWorkflows.
type kind struct{ *Controller }

// Gone implements reconciler.Kind, as do the methods below.
func (kind) Gone(string) {}

func (k kind) Seen(before, now *v1alpha1.HTCWorkflow) {
	if before == nil {
		return
	}
	if !reconciler.Unchanged(before, now) {
		k.stagings.Stop(before.Namespace + "/" + before.Name)
	}
	if now == nil {
		k.SecretTouched(before.Namespace)
	}
}

func (kind) Ended(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase.Terminal() }

func (kind) Acted(string, error) (woken bool) { return false }

func (kind) Explain(err error) reconciler.Blocker { return explain(err) }

// Next decides what needs HTCondor.
func (k kind) Next(ctx context.Context, w *v1alpha1.HTCWorkflow) (reconciler.Step, error) {
	s, err := k.gather(ctx, w)
	if err != nil {
		return reconciler.Step{}, err
	}
	d := Plan(s)
	next := reconciler.Step{Class: classOf(d.Action), Orphans: s.Orphans, Removes: d.Action == Remove}
	if d.Action != Rest {
		next.Do = func(ctx context.Context) (reconciler.Class, error) { return next.Class, k.do(ctx, w, s, d) }
	}
	return next, nil
}

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

// explain turns an error of an action into a message for the user.
func explain(err error) reconciler.Blocker {
	if e, lost := errors.AsType[*lostError](err); lost {
		return reconciler.Blocked(v1alpha1.ConditionSubmitted, reasonLedgerLost, e.Error())
	}
	if e, is := errors.AsType[*artifact.Unusable](err); is {
		return reconciler.Blocked(v1alpha1.ConditionOutputsPushed, e.Reason, err.Error())
	}
	b, endpoint := sending.Explain(err)
	return reconciler.Blocker{Blocker: b, Endpoint: endpoint}
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
		return c.settle(ctx, s.newest().Run)
	case Remove:
		return c.Finalize(ctx, w)
	}
	return nil
}

// Turned continues with what waits for a schedd that answers again, or for credentials.
func (c *Controller) Turned() {
	c.RetryAll(func(b reconciler.Blocker) bool {
		return b.Condition == v1alpha1.ConditionBackendReachable || b.Condition == v1alpha1.ConditionCredentials
	})
}
