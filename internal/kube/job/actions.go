package job

import (
	"context"
	"time"

	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// classOf returns the class of an action.
func classOf(a lifecycle.Action) reconciler.Class {
	switch a {
	case lifecycle.Submit:
		return reconciler.Submitting
	case lifecycle.Stop, lifecycle.Cancel, lifecycle.Pace:
		return reconciler.Removing
	case lifecycle.Remove:
		return reconciler.Deleting
	}
	return reconciler.Asking
}

// deleters is how many HTCJobs' jobs are removed together.
const deleters = 64

// backendOf returns the schedd that actions of a class on an HTCJob go to: the one where it is or will be. Of several
// schedds it is one that does not answer, if any, since the action will wait for that one.
func (c *Controller) backendOf(class reconciler.Class) func(context.Context, string) schedd.Endpoint {
	return func(ctx context.Context, key string) schedd.Endpoint {
		var endpoint schedd.Endpoint
		job := c.Get(key)
		if job != nil {
			endpoint = c.NextEndpoint(job)
		}
		runs, err := c.Runs(ctx, key)
		if err != nil || job != nil && class == reconciler.Submitting {
			return endpoint
		}
		for _, t := range backend.Targets(runs) {
			if endpoint = t.Endpoint; c.Answering.State(endpoint).Down {
				return endpoint
			}
		}
		return endpoint
	}
}

func (k kind) Line(ctx context.Context, class reconciler.Class, key string) sending.Line {
	job := k.Get(key)
	fetches := job != nil && job.DeletionTimestamp == nil &&
		(class == reconciler.Submitting || class == reconciler.Asking) &&
		len(inputs.References(job.Spec)) > 0
	return sending.Line{At: k.backendOf(class)(ctx, key), Fetches: fetches}
}

// backendOfRun returns the schedd of the newest run of a UID.
func (c *Controller) backendOfRun(ctx context.Context, uid string) schedd.Endpoint {
	run, err := c.latest(ctx, uid)
	if err != nil {
		return schedd.Endpoint{}
	}
	return backend.TargetOf(run).Endpoint
}

// rest pauses a worker after a question that took so long.
func rest(took time.Duration) { time.Sleep(backend.Rest(took)) }
