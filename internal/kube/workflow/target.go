package workflow

import (
	"context"
	"errors"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// backendOf returns the schedd that what is done for a workflow goes to: where its newest DAG is, or where it would be
// sent.
func (c *Controller) backendOf(ctx context.Context, key string) schedd.Endpoint {
	runs, err := c.Runs(ctx, key)
	if n := len(runs); err == nil && n > 0 {
		return backend.TargetOf(runs[n-1]).Endpoint
	}
	w := c.Get(key)
	if w == nil {
		return schedd.Endpoint{}
	}
	return c.NextEndpoint(w)
}

func (k kind) Line(ctx context.Context, class reconciler.Class, key string) sending.Line {
	w := k.Get(key)
	fetches := w != nil && w.DeletionTimestamp == nil &&
		(class == reconciler.Submitting || class == reconciler.Asking) &&
		fetchesArtifacts(w)
	return sending.Line{At: k.backendOf(ctx, key), Fetches: fetches}
}

// eachSender does something as each identity that may have sent what is at a target: HTCondor passes over what is
// another account's.
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
		case condor.KindOf(err) == condor.NotAuthorised:
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
