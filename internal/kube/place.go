package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
)

// target returns where the spec asks for; without a schedd where that is the usual one. Its errors are of kind schedd.Refused.
func (s Site) target(job *v1alpha1.HTCJob) (backend.Target, error) {
	t := backend.Target{Namespace: job.Namespace}
	pool := job.Spec.Pool
	if pool == nil {
		return t, nil
	}
	t.Place, t.Secret = schedd.Place{Collector: pool.Collector, Schedd: pool.Schedd}, pool.SecretName
	if t.Place.Collector == s.Collector {
		t.Place.Collector = ""
	}
	if t.Place == (schedd.Place{Schedd: s.Schedd}) {
		t.Place.Schedd = ""
	}
	switch {
	case t.Place.Collector != "" && t.Place.Schedd == "":
		return t, refuse("spec.pool.collector names another pool: write in spec.pool.schedd which of its schedds is meant")
	case t.Place.Schedd != "":
		if err := schedd.AllowPlace(t.Place, s.AllowPools); err != nil {
			return t, err
		}
	}
	switch {
	case t.Secret == "" || slices.Contains(s.PoolSecrets, t.Secret):
		return t, nil
	case len(s.PoolSecrets) == 0:
		return t, refuse("spec.pool.secretName: this htcd reads no Secrets of namespaces (--namespace-secrets is not set): leave it out")
	}
	return t, refuse("spec.pool.secretName: htcd may read Secrets of the names %s only (--pool-secrets)", strings.Join(s.PoolSecrets, ", "))
}

func refuse(format string, args ...any) error {
	return &schedd.Error{Kind: schedd.Refused, Stderr: fmt.Sprintf(format, args...)}
}

// identity is as whom, and where, a command about a run with that target goes.
func (c *Controller) identity(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	id, err := c.Credentials.Identity(ctx, t.Namespace, t.Secret)
	id.Place = t.Place
	return id, err
}

// choose says where an attempt that begins now goes.
func (c *Controller) choose(ctx context.Context, job *v1alpha1.HTCJob) (backend.Target, schedd.Identity, error) {
	t, err := c.Site.target(job)
	if err != nil {
		return t, schedd.Identity{}, err
	}
	id, err := c.identity(ctx, t)
	if err != nil || t.Place.Schedd != "" {
		return t, id, err
	}
	name, err := c.Schedd.ScheddName(ctx, id)
	if err != nil {
		return t, id, err
	}
	t.Place.Schedd, id.Place.Schedd = name, name
	c.usual.set(job.Namespace, t.Place)
	return t, id, nil
}

// usual remembers which schedd was chosen last for those of a namespace who name none. An account may have a schedd of
// its own, and so may a namespace.
type usual struct{ m sync.Map }

func (u *usual) set(namespace string, p schedd.Place) { u.m.Store(namespace, p) }

func (u *usual) get(namespace string) schedd.Place {
	p, _ := u.m.Load(namespace)
	place, _ := p.(schedd.Place)
	return place
}

// nextPlace is where the next attempt of an HTCJob goes, as far as that is known.
func (c *Controller) nextPlace(job *v1alpha1.HTCJob) schedd.Place {
	t, err := c.Site.target(job)
	if err != nil || t.Place.Schedd == "" {
		return c.usual.get(job.Namespace)
	}
	return t.Place
}

// placeOf is the schedd that an HTCJob depends on at present.
func (c *Controller) placeOf(s situation, v view) schedd.Place {
	switch {
	case s.run != nil && s.run.Schedd != "" && v.decision.action != actSubmit:
		return backend.TargetOf(*s.run).Place
	case v.stuck && v.blocker.condition == v1alpha1.ConditionBackendReachable:
		return v.blocker.place
	}
	return c.nextPlace(s.job)
}

// questioner is as whom, and where, a group is asked about.
func (c *Controller) questioner(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	if t.Secret != "" {
		return c.identity(ctx, t)
	}
	id, err := c.Credentials.Any(ctx)
	id.Place = t.Place
	return id, err
}
