package backend

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Schedd is the part of HTCondor that htcd uses.
type Schedd interface {
	Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error)
	Queue(ctx context.Context, id schedd.Identity, constraint string, fn condor.JobFunc) error
	Present(ctx context.Context, id schedd.Identity, constraint string, fn condor.JobFunc) error
	PresentOf(ctx context.Context, id schedd.Identity, uids []string, fn condor.JobFunc) error
	Changed(ctx context.Context, id schedd.Identity, constraint string, p schedd.Period, fn condor.JobFunc) error
	History(
		ctx context.Context,
		id schedd.Identity,
		constraint string,
		b schedd.HistoryBounds,
		fn condor.JobFunc,
	) error
	// Factories tells of what makes the jobs of runs; SetParallelism changes how many of one are there at a time, and
	// after StopMaking there are no more than those that it counts.
	Factories(ctx context.Context, id schedd.Identity, constraint string, fn func(schedd.Factory) error) error
	SetParallelism(ctx context.Context, id schedd.Identity, t condor.Tag, cluster, n, idle int) error
	StopMaking(ctx context.Context, id schedd.Identity, t condor.Tag, cluster int) (made int, there bool, err error)
	Remove(ctx context.Context, id schedd.Identity, constraint, reason string) error
	// HoldIdle puts matching jobs that wait for a slot on hold; ReleaseHeld ends that hold and no other.
	HoldIdle(ctx context.Context, id schedd.Identity, constraint, reason string) error
	ReleaseHeld(ctx context.Context, id schedd.Identity, constraint, reason string) error
	// TakesNodes returns an error of kind schedd.Refused if the pool has no machines for jobs of several nodes of this schedd.
	TakesNodes(ctx context.Context, id schedd.Identity) error
	// Answers asks the smallest question that only a working schedd can answer.
	Answers(ctx context.Context, id schedd.Identity) error
	// Daemon returns what the collector knows of the schedd.
	Daemon(ctx context.Context, id schedd.Identity) (schedd.Daemon, error)
	// ScheddName returns where an identity's new jobs go by default.
	ScheddName(ctx context.Context, id schedd.Identity) (string, error)
	Account(ctx context.Context, id schedd.Identity) (string, error)
	// Transfer fetches the output of completed jobs, each to dir/<proc>; Release lets them leave the queue.
	Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error
	Release(ctx context.Context, id schedd.Identity, procs schedd.Procs) (found bool, err error)
}
