package backend

import (
	"context"
	"slices"
	"strings"
	"sync"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Policy says where, and as whom, a site lets its users' runs go.
type Policy struct {
	Collector   string   // of the usual pool; empty: from HTCondor's configuration
	Schedd      string   // the usual one; empty: from the configuration or the site's command
	AllowPools  []string // patterns of schedd.AllowEndpoint for other schedds; empty: none allowed
	PoolSecrets []string // names of the Secrets that users may name; empty: none
}

// Target returns the target that a wish leads to; without a schedd if that is the usual one. Its errors are of kind
// schedd.Refused.
func (p Policy) Target(wish Target) (Target, error) {
	t := p.usual(wish)
	switch {
	case t.Endpoint.Collector != "" && t.Endpoint.Schedd == "":
		return t, condor.Refusal(
			"spec.pool.collector names another pool: write in spec.pool.schedd which of its schedds is meant",
		)
	case t.Endpoint.Schedd != "":
		if err := schedd.AllowEndpoint(t.Endpoint, p.AllowPools); err != nil {
			return t, err
		}
	}
	return p.allowSecret(t)
}

// Own is Target for an endpoint that an HTCPool names: its administrator needs no leave to choose it.
func (p Policy) Own(wish Target) (Target, error) { return p.allowSecret(p.usual(wish)) }

// usual leaves out of a target what is usual.
func (p Policy) usual(t Target) Target {
	if t.Endpoint.Collector == p.Collector {
		t.Endpoint.Collector = ""
	}
	if t.Endpoint == (schedd.Endpoint{Schedd: p.Schedd}) {
		t.Endpoint.Schedd = ""
	}
	return t
}

func (p Policy) allowSecret(t Target) (Target, error) {
	switch {
	case t.Secret == "" || slices.Contains(p.PoolSecrets, t.Secret):
		return t, nil
	case len(p.PoolSecrets) == 0:
		return t, condor.Refusal(
			"spec.pool.secretName: this htcd reads no Secrets of namespaces (--namespace-secrets is not set): leave it out",
		)
	}
	return t, condor.Refusal(
		"spec.pool.secretName: htcd may read Secrets of the names %s only (--pool-secrets)",
		strings.Join(p.PoolSecrets, ", "),
	)
}

// Chooser decides where an attempt that begins now goes.
type Chooser struct {
	Schedd interface {
		ScheddName(ctx context.Context, id schedd.Identity) (string, error)
	}
	Credentials Credentials

	// usual is the endpoint chosen last for a namespace's HTCJobs that name none. An account may have a schedd of its
	// own, and so may a namespace.
	usual sync.Map
}

// Choose gives a target without a schedd the usual one, and returns the identity to send as.
func (c *Chooser) Choose(ctx context.Context, t Target) (Target, schedd.Identity, error) {
	id, err := c.Credentials.Identity(ctx, t)
	if err != nil || t.Endpoint.Schedd != "" {
		return t, id, err
	}
	name, err := c.Schedd.ScheddName(ctx, id)
	if err != nil {
		return t, id, err
	}
	t.Endpoint.Schedd = name
	c.usual.Store(t.Namespace, t.Endpoint)
	return t, id.At(t.Endpoint), nil
}

// Usual returns the endpoint chosen last in a namespace, the zero value if none was.
func (c *Chooser) Usual(namespace string) schedd.Endpoint {
	last, _ := c.usual.Load(namespace)
	endpoint, _ := last.(schedd.Endpoint)
	return endpoint
}
