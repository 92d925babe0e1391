package outputfetch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/fairqueue"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// Schedd is what is asked of HTCondor.
type Schedd interface {
	Queue(ctx context.Context, id schedd.Identity, constraint string, fn func(schedd.Job) error) error
	// Transfer brings the output of completed jobs, each to dir/<proc>; Release lets them leave the queue.
	Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error
	Release(ctx context.Context, id schedd.Identity, procs schedd.Procs) error
}

// Ledger is where runs and procs are remembered.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Observer hears what comes of fetches. Its methods are called by several goroutines.
type Observer interface {
	// Tried: a fetch for an HTCJob has ended; err is what is in the way of the rest, which is fetched later.
	Tried(key string, err error)
	// Fetched: the output of so many procs of a run is here.
	Fetched(run ledger.Run, procs int, bytes int64)
	// Incomplete: of the output of a job that is here HTCondor did not keep all files.
	Incomplete(run ledger.Run, lack string)
	// GaveUp: the output of so many procs of a run cannot be had.
	GaveUp(run ledger.Run, procs int, why string)
	// Requeued: a job of a run that had completed is in the queue again, and is to be asked about.
	Requeued(run ledger.Run)
	// Ended: jobs of a run that is over have run to their end, of which the ledger does not know.
	Ended(ctx context.Context, run ledger.Run, jobs []schedd.Job) error
}

// Options are the parts of a Fetcher.
type Options struct {
	Store     output.Store // where output is kept; without a root nothing is fetched
	KeepFree  int64        // bytes that are left free on its volume; 0: see output.Reserve
	MaxOutput int64        // MiB that one job may leave behind; 0: no limit
	Queue     fairqueue.Queue
	Workers   int // HTCJobs whose output is fetched in parallel, at each schedd
	// Endpoint returns the schedd that is asked for an HTCJob.
	Endpoint    func(ctx context.Context, key string) schedd.Endpoint
	Ledger      Ledger
	Schedd      Schedd
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
	bookings   bookings
	unreleased unreleased
	takenUp    atomic.Bool // see TakeUp

	volume func() (free, size output.Room, err error) // of Store
}

// New returns a Fetcher; Run starts it.
func New(o Options) *Fetcher {
	f := &Fetcher{Options: o, volume: o.Store.Volume}
	f.workers = &fairqueue.Pool[schedd.Endpoint]{Queue: o.Queue, Size: o.Workers, Backend: o.Endpoint, Serve: fairqueue.Each(f.Fetch)}
	return f
}

// Run fetches until ctx ends. What that breaks off is fetched again.
func (f *Fetcher) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, f.Queue.ShutDown)()
	f.workers.Run(ctx)
}

// Waiting returns how many HTCJobs wait for a worker.
func (f *Fetcher) Waiting() int { return f.workers.Waiting() }

// Add has the output of a run fetched.
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

// Resume takes up what an earlier htcd has not come to. No fetch may be under way.
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

// Fetch is one fetch for an HTCJob. It queues the next, after a back-off where this one failed.
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

// fetchable reports whether the output of a run is fetched. What an older htcd has sent has no place to go.
func (f *Fetcher) fetchable(run ledger.Run) bool { return run.OutputDir != "" && f.Store.Root != "" }

func keyOf(run ledger.Run) string { return run.Namespace + "/" + run.Name }
