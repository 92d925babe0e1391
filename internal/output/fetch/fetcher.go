package fetch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Schedd is the part of HTCondor that a Fetcher uses.
type Schedd interface {
	Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error
	// Transfer fetches the output of completed jobs, each to dir/<proc>; a Release lets them leave the queue.
	Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error
	Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error)
}

// Ledger records runs and procs.
type Ledger = ledger.Store

// Observer receives the results of fetches. Its methods are called by several goroutines.
type Observer interface {
	// Tried: a fetch for an HTCJob has ended; err says what prevents the rest, which is fetched later.
	Tried(key string, err error)
	// Fetched: the output of this many procs of a run has been fetched.
	Fetched(run ledger.Run, procs int, bytes int64)
	// Incomplete: a job's output has been fetched, but HTCondor did not keep all of its files.
	Incomplete(run ledger.Run, lack string)
	// GaveUp: the output of this many procs of a run cannot be fetched.
	GaveUp(run ledger.Run, procs int, why string)
	// Requeued: a completed job of a run is in the queue again, and HTCondor should be asked about it.
	Requeued(run ledger.Run)
	// Ended: jobs of a run that is over have run to their end without the ledger knowing.
	Ended(ctx context.Context, run ledger.Run, jobs []condor.Job) error
}

// Options are the parts of a Fetcher.
type Options struct {
	Store     output.Store   // where output is kept; without a root, nothing is fetched
	Shares    *output.Shares // of its volume
	MaxOutput int64          // MiB of output that one job may leave; 0: no limit
	Queue     fairqueue.Queue
	// Workers is of how many HTCJobs output is fetched in parallel at each schedd, beside one of a namespace that has
	// none among them.
	Workers int
	// Endpoint returns the schedd to ask for an HTCJob.
	Endpoint func(ctx context.Context, key string) schedd.Endpoint
	Ledger   Ledger
	Schedd   Schedd
	// Gone returns nil if ended jobs of a run, which the queue did not show when it was asked then, will not be back.
	Gone        func(ctx context.Context, run ledger.Run, asked time.Time) error
	Credentials backend.Credentials
	Observer    Observer
	Log         zerolog.Logger
	Now         func() time.Time
}

// Fetcher fetches output.
type Fetcher struct {
	Options
	workers    *fairqueue.Pool[schedd.Endpoint]
	pauses     pauses
	unreleased unreleased
	takenUp    atomic.Bool // see TakeUp
}

// New returns a Fetcher; Run starts it.
func New(o Options) *Fetcher {
	f := &Fetcher{Options: o}
	f.workers = &fairqueue.Pool[schedd.Endpoint]{
		Queue:   o.Queue,
		Size:    o.Workers,
		Spare:   true,
		Backend: o.Endpoint,
		Serve:   fairqueue.Each(f.Fetch),
	}
	return f
}

// Run fetches until ctx ends. Whatever that interrupts is fetched again.
func (f *Fetcher) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, f.Queue.ShutDown)()
	f.workers.Run(ctx)
}

// Waiting returns how many HTCJobs wait for a worker.
func (f *Fetcher) Waiting() int { return f.workers.Waiting() }

// Add queues a run's output for fetching.
func (f *Fetcher) Add(run ledger.Run) {
	if f.fetchable(run) {
		f.Queue.Add(keyOf(run))
	}
}

// Retry ends the back-off of an HTCJob.
func (f *Fetcher) Retry(key string) {
	f.Queue.Forget(key)
	f.Queue.Add(key)
}

// Resume continues what an earlier htcd left undone. No fetch may be under way.
func (f *Fetcher) Resume(ctx context.Context) error {
	if f.Store.Root == "" {
		return nil
	}
	if err := f.Store.Sweep(true); err != nil {
		f.Log.Warn().Err(err).Msg("what is left of broken-off fetches is not removed")
	}
	return f.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		runs, err := tx.UnfetchedRuns()
		for _, run := range runs {
			f.Queue.Add(keyOf(run))
		}
		return err
	})
}

// Fetch performs one fetch for an HTCJob. It queues the next, after a back-off if this one failed.
func (f *Fetcher) Fetch(ctx context.Context, key string) {
	more, err := f.fetch(ctx, key)
	f.Observer.Tried(key, err)
	if paused, ok := errors.AsType[*pausedError](err); ok {
		f.Queue.Forget(key)
		f.Queue.AddAfter(key, paused.until.Sub(f.Now()))
		return
	}
	if err != nil {
		f.Queue.AddRateLimited(key)
		return
	}
	f.Queue.Forget(key)
	if more {
		f.Queue.Add(key)
	}
}

// fetchable reports whether a run's output is fetched. Runs sent by an older htcd have no place for it.
func (f *Fetcher) fetchable(run ledger.Run) bool { return run.OutputDir != "" && f.Store.Root != "" }

func keyOf(run ledger.Run) string { return run.Namespace + "/" + run.Name }
