package backend

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Schedd is the part of HTCondor that htcd uses. Whoever wraps it, to pace, fence or count what is asked, wraps all
// questions and all changes.
type Schedd interface {
	Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error)
	Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error
	Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error)
	// Transfer fetches the output of completed jobs, each to dir/<proc>; a Release lets them leave the queue.
	Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error
	// Ping asks the smallest question that only a working schedd can answer; for Writing it returns the account.
	Ping(ctx context.Context, id schedd.Identity, p schedd.Permission) (account string, err error)
	// Daemon returns what the collector knows of the schedd.
	Daemon(ctx context.Context, id schedd.Identity) (schedd.Daemon, error)
	// TakesNodes returns an error of kind schedd.Refused if the pool has no machines for jobs of several nodes of this
	// schedd.
	TakesNodes(ctx context.Context, id schedd.Identity) error
	// ScheddName returns where an identity's new jobs go by default.
	ScheddName(ctx context.Context, id schedd.Identity) (string, error)
}
