package outputpush

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/fairqueue"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// Registries are where artifacts are pushed to.
type Registries interface {
	Push(ctx context.Context, reference string, files []artifact.Upload, last func() error, dockerConfigs ...[]byte) (artifact.Pushed, error)
}

// Ledger records runs and what they have written.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Observer receives the results. Its methods are called by several goroutines.
type Observer interface {
	// Passed: all artifacts of an HTCJob that can be pushed now have been; err says what prevents the rest, which is tried later.
	Passed(key string, err error)
	// Pushed: an artifact is in its registry.
	Pushed(run ledger.Run, bytes int64)
	// NotPushed: an artifact can never be pushed.
	NotPushed(run ledger.Run, why string)
}

// ErrGone is the error of Credentials for an HTCJob that has been deleted.
var ErrGone = errors.New("the HTCJob has been deleted")

// Options are the parts of a Pusher.
type Options struct {
	Store      output.Store
	Queue      fairqueue.Queue
	Workers    int // artifacts that are pushed in parallel to each registry
	Ledger     Ledger
	Registries Registries
	// Credentials returns the .dockerconfigjson of a run's HTCJob.
	Credentials func(ctx context.Context, run ledger.Run) ([][]byte, error)
	Observer    Observer
	Log         zerolog.Logger
}

// Pusher pushes outputs.
type Pusher struct {
	Options
	workers *fairqueue.Pool[string]
	passes  passes
	logins  logins
}

// New returns a Pusher; Run starts it.
func New(o Options) *Pusher {
	p := &Pusher{Options: o}
	p.workers = &fairqueue.Pool[string]{Queue: o.Queue, Size: o.Workers, Backend: p.registryOf, Serve: fairqueue.Each(p.Push)}
	return p
}

// Run pushes until ctx ends. Whatever that interrupts is pushed again.
func (p *Pusher) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, p.Queue.ShutDown)()
	var looking sync.WaitGroup
	looking.Go(func() { p.lookOften(ctx) })
	p.workers.Run(ctx)
	looking.Wait()
}

// Waiting returns how many HTCJobs wait for a worker.
func (p *Pusher) Waiting() int { return p.workers.Waiting() }

// Resume continues what an earlier htcd left undone.
func (p *Pusher) Resume(ctx context.Context) error {
	return p.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		runs, err := tx.UnpushedRuns()
		for _, run := range runs {
			p.Queue.Add(run.Namespace + "/" + run.Name)
		}
		return err
	})
}

// Push makes one step for an HTCJob, and queues the next, after a back-off at the end of a pass that had a failure.
func (p *Pusher) Push(ctx context.Context, key string) {
	more, err := p.step(ctx, key)
	switch {
	case ctx.Err() != nil: // it is ending
	case more:
		p.Queue.Add(key)
	case err != nil:
		p.Observer.Passed(key, err)
		p.Queue.AddRateLimited(key)
	default:
		p.Observer.Passed(key, nil)
		p.Queue.Forget(key)
		p.logins.forget(key)
	}
}

// registryOf returns the registry of the next artifact of an HTCJob.
func (p *Pusher) registryOf(ctx context.Context, key string) string {
	_, w, err := p.next(ctx, key)
	if err != nil {
		return "" // the step will say so
	}
	return artifact.Host(of(w.Artifact, w.Proc))
}

// next returns the next row of an HTCJob in this pass; ledger.ErrNotFound if there is none.
func (p *Pusher) next(ctx context.Context, key string) (run ledger.Run, w ledger.Written, err error) {
	err = p.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if run, err = newest(tx, key); err == nil {
			w, err = tx.NextPush(run.UID, run.Attempt, p.passes.at(key))
		}
		return err
	})
	return run, w, err
}

// newest returns the newest run of an HTCJob.
func newest(tx *ledger.Tx, key string) (ledger.Run, error) {
	namespace, name, _ := strings.Cut(key, "/")
	runs, err := tx.Runs(ledger.RunFilter{Namespace: namespace, Name: name})
	if err == nil && len(runs) == 0 {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Run{}, err
	}
	return runs[len(runs)-1], nil
}
