package job

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
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
	case lifecycle.Stop, lifecycle.Cancel:
		return reconciler.Removing
	case lifecycle.Remove:
		return reconciler.Deleting
	}
	return reconciler.Asking
}

// workers returns how many workers of a class each schedd has.
func (c *Controller) workers(class reconciler.Class) int {
	if class == reconciler.Deleting {
		return max(deleters, c.Submitters)
	}
	return c.Submitters
}

// deleters is how many HTCJobs' jobs are removed together.
const deleters = 64

// actionQueues hold the keys of HTCJobs that need HTCondor. A key may wait in more than one of them, since decisions
// about it change. A worker claims it while acting on it: another worker that finds it claimed may drop it, because the
// claimant queues it for sync afterwards.
type actionQueues struct {
	fairqueue.Claims
	queues [reconciler.Classes]fairqueue.Queue
}

func newActionQueues(limiter func() workqueue.TypedRateLimiter[string]) *actionQueues {
	a := &actionQueues{}
	for class := range a.queues {
		a.queues[class] = fairqueue.New(limiter())
	}
	return a
}

func (a *actionQueues) add(c reconciler.Class, key string) { a.queues[c].Add(key) }

func (a *actionQueues) addAfter(c reconciler.Class, key string, d time.Duration) {
	a.queues[c].AddAfter(key, d)
}

// again adds a key after its back-off, which grows each time.
func (a *actionQueues) again(c reconciler.Class, key string) { a.queues[c].AddRateLimited(key) }

// tries returns how often a key was added again since it was last forgotten.
func (a *actionQueues) tries(c reconciler.Class, key string) int { return a.queues[c].NumRequeues(key) }

// forget resets the back-off of a key.
func (a *actionQueues) forget(key string) {
	for _, queue := range a.queues {
		queue.Forget(key)
	}
}

func (a *actionQueues) shutDown() {
	for _, queue := range a.queues {
		queue.ShutDown()
	}
}

// backendOf returns the schedd that actions of a class on an HTCJob go to: the one where it is or will be. Of several schedds
// it is one that does not answer, if any, since the action will wait for that one.
func (c *Controller) backendOf(class reconciler.Class) func(context.Context, string) schedd.Endpoint {
	return func(ctx context.Context, key string) schedd.Endpoint {
		var endpoint schedd.Endpoint
		job := c.get(key)
		if job != nil {
			endpoint = c.nextEndpoint(job)
		}
		runs, err := c.runsOf(ctx, key)
		if err != nil || job != nil && class == reconciler.Submitting {
			return endpoint
		}
		for _, t := range backend.Targets(runs) {
			if endpoint = t.Endpoint; c.answering.State(endpoint).Down {
				return endpoint
			}
		}
		return endpoint
	}
}

// lineOf returns the line of actions of a class on an HTCJob.
func (c *Controller) lineOf(class reconciler.Class) func(context.Context, string) sending.Line {
	at := c.backendOf(class)
	return func(ctx context.Context, key string) sending.Line {
		job := c.get(key)
		fetches := job != nil && job.DeletionTimestamp == nil && (class == reconciler.Submitting || class == reconciler.Asking) && len(inputs.References(job.Spec)) > 0
		return sending.Line{At: at(ctx, key), Fetches: fetches}
	}
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
