package backend

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
)

// Schedd is what is asked of HTCondor.
type Schedd interface {
	Submit(ctx context.Context, id schedd.Identity, dir string) (schedd.Cluster, error)
	Queue(ctx context.Context, id schedd.Identity, constraint string, fn func(schedd.Job) error) error
	History(ctx context.Context, id schedd.Identity, constraint string, b schedd.HistoryBounds, fn func(schedd.Job) error) error
	Remove(ctx context.Context, id schedd.Identity, constraint, reason string) error
	// Answers is the smallest question that only a schedd which answers can answer.
	Answers(ctx context.Context, id schedd.Identity) error
	// ScheddName is where new jobs of an identity go when nobody says where.
	ScheddName(ctx context.Context, id schedd.Identity) (string, error)
	Account(ctx context.Context, id schedd.Identity) (string, error)
	// Transfer brings the output of completed jobs, each to dir/<proc>; Release lets them leave the queue.
	Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error
	Release(ctx context.Context, id schedd.Identity, procs schedd.Procs) error
}
