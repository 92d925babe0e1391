package kube

import (
	"context"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/schedd"
)

// accountOf returns the account whose credentials an HTCJob is sent with.
func accountOf(job *v1alpha1.HTCJob) backend.Account {
	a := backend.Account{Namespace: job.Namespace}
	if job.Spec.Pool != nil {
		a.Secret = job.Spec.Pool.SecretName
	}
	return a
}

// target returns where an HTCJob goes; without a schedd it means the usual one. Its errors are of kind schedd.Refused.
func (s Site) target(job *v1alpha1.HTCJob) (backend.Target, error) {
	wish := backend.Target{Account: accountOf(job)}
	if pool := job.Spec.Pool; pool != nil {
		wish.Endpoint = schedd.Endpoint{Collector: pool.Collector, Schedd: pool.Schedd}
	}
	return s.Target(wish)
}

// choose returns where an attempt that begins now goes and the identity it is sent with.
func (c *Controller) choose(ctx context.Context, job *v1alpha1.HTCJob) (backend.Target, schedd.Identity, error) {
	t, err := c.Site.target(job)
	if err != nil {
		return t, schedd.Identity{}, err
	}
	return c.chooser.Choose(ctx, t)
}

// nextEndpoint returns where the next attempt of an HTCJob goes, as far as that is known.
func (c *Controller) nextEndpoint(job *v1alpha1.HTCJob) schedd.Endpoint {
	t, err := c.Site.target(job)
	if err != nil || t.Endpoint.Schedd == "" {
		return c.chooser.Usual(job.Namespace)
	}
	return t.Endpoint
}

// endpointOf returns the schedd that an HTCJob depends on at present: that of its run or of its next attempt.
func (c *Controller) endpointOf(s lifecycle.Situation, d lifecycle.Decision, b *blocker) schedd.Endpoint {
	switch {
	case s.Run != nil && s.Run.Schedd != "" && d.Action != lifecycle.Submit:
		return backend.TargetOf(*s.Run).Endpoint
	case b != nil && b.Condition == v1alpha1.ConditionBackendReachable:
		return b.endpoint
	}
	return c.nextEndpoint(s.Job)
}

// questioner returns the identity, with the endpoint, used to ask about the runs of a target.
func (c *Controller) questioner(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	return backend.Questioner(ctx, c.Credentials, t)
}

// endpointTurned queues every HTCJob that may depend on an endpoint.
func (c *Controller) endpointTurned(endpoint schedd.Endpoint, answers bool) {
	if answers {
		// HTCJobs that could not even find out which schedd to ask may find out now.
		c.retryNow(func(t blocker) bool {
			return t.Condition == v1alpha1.ConditionBackendReachable && (t.endpoint == endpoint || t.endpoint == schedd.Endpoint{})
		})
	}
	c.wakeAll()
}
