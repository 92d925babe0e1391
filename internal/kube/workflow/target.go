package workflow

import (
	"context"
	"errors"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// choose returns where a DAG that begins now goes and the identity it is sent with.
func (c *Controller) choose(ctx context.Context, w *v1alpha1.HTCWorkflow, p pool.Pool) (backend.Target, schedd.Identity, error) {
	t, err := p.Target(asJob(w), c.Site.Policy)
	if err != nil {
		return t, schedd.Identity{}, err
	}
	if schedds := p.Choice(asJob(w)); len(schedds) > 0 {
		return c.Several.Choose(ctx, t, schedds, 1)
	}
	return c.Chooser.Choose(ctx, t)
}

// backendOf returns the schedd that what is done for a workflow goes to: where its newest DAG is, or where it would be sent.
func (c *Controller) backendOf(ctx context.Context, key string) schedd.Endpoint {
	runs, err := c.Runs(ctx, key)
	if n := len(runs); err == nil && n > 0 {
		return backend.TargetOf(runs[n-1]).Endpoint
	}
	w := c.Get(key)
	if w == nil {
		return schedd.Endpoint{}
	}
	t, err := c.pools.Presumed(asJob(w)).Target(asJob(w), c.Site.Policy)
	if err != nil || t.Endpoint.Schedd == "" {
		return c.Chooser.Usual(t.Namespace)
	}
	return t.Endpoint
}

func (k kind) Line(ctx context.Context, class reconciler.Class, key string) sending.Line {
	w := k.Get(key)
	fetches := w != nil && w.DeletionTimestamp == nil && (class == reconciler.Submitting || class == reconciler.Asking) && fetchesArtifacts(w)
	return sending.Line{At: k.backendOf(ctx, key), Fetches: fetches}
}

// eachSender does something as each identity that may have sent what is at a target: HTCondor passes over what is another account's.
func (c *Controller) eachSender(ctx context.Context, t backend.Target, do func(id schedd.Identity) error) error {
	ids, err := backend.SendersOf(ctx, c.Credentials, t)
	if err != nil {
		return err
	}
	var denied error
	done := false
	for _, id := range ids {
		switch err := do(id); {
		case err == nil:
			done = true
		case schedd.KindOf(err) == schedd.NotAuthorised:
			denied = errors.Join(denied, err)
		default:
			return err
		}
	}
	if done {
		return nil
	}
	return denied
}

// questioner returns the identity, with the endpoint, used to ask about the runs of a target.
func (c *Controller) questioner(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	return backend.Questioner(ctx, c.Credentials, t)
}
