package scheddtest

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Several are schedds, each of which begins with cluster 1. The site's command, if any, names the usual one.
type Several struct {
	Usual string
	At    map[schedd.Endpoint]*Schedd
}

func (p *Several) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	return p.At[id.Endpoint].Submit(ctx, id, dir)
}

func (p *Several) Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error {
	return p.At[id.Endpoint].Query(ctx, id, q, fn)
}

func (p *Several) Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error) {
	return p.At[id.Endpoint].Change(ctx, id, c)
}

func (p *Several) Daemon(ctx context.Context, id schedd.Identity) (schedd.Daemon, error) {
	return p.At[id.Endpoint].Daemon(ctx, id)
}

func (p *Several) Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error {
	return p.At[id.Endpoint].Transfer(ctx, id, procs, dir)
}

func (p *Several) Ping(ctx context.Context, id schedd.Identity, permission schedd.Permission) (string, error) {
	return p.At[id.Endpoint].Ping(ctx, id, permission)
}

func (p *Several) TakesNodes(ctx context.Context, id schedd.Identity) error {
	return p.At[id.Endpoint].TakesNodes(ctx, id)
}

func (p *Several) ScheddName(context.Context, schedd.Identity) (string, error) { return p.Usual, nil }
