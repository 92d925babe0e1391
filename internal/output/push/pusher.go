package push

import (
	"context"
	"errors"
	"sync"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// Registries are where artifacts are pushed to.
type Registries interface {
	Push(
		ctx context.Context,
		to artifact.Target,
		files []artifact.Upload,
		last func(digest string) error,
		dockerConfigs ...[]byte,
	) (artifact.Pushed, error)
}

// Ledger records runs and what they have written.
type Ledger = ledger.Store

// Observer receives the results. Its methods are called by several goroutines.
type Observer interface {
	// Passed: all artifacts of an HTCJob that can be pushed now have been; err says what prevents the rest, which is
	// tried later.
	Passed(key string, err error)
	// Pushed: an artifact is in its registry.
	Pushed(run ledger.Run, bytes int64)
	// NotPushed: an artifact can never be pushed.
	NotPushed(run ledger.Run, why string)
}

// ErrGone is the error of Credentials for what has been deleted.
var ErrGone = errors.New("it has been deleted")

// Options are the parts of a Pusher.
type Options struct {
	Subject    Subject // nil: HTCJobs
	Store      output.Store
	Queue      fairqueue.Queue
	Workers    int // artifacts that are pushed in parallel to each registry
	Ledger     Ledger
	Registries Registries
	// Credentials returns the .dockerconfigjson of the HTCJob, or of the step, of an item.
	Credentials func(ctx context.Context, item Item) ([][]byte, error)
	Observer    Observer
	Log         zerolog.Logger
}

// Pusher pushes outputs.
type Pusher struct {
	Options
	workers *fairqueue.Pool[string]
	passes  passes
	logins  logins
	naming  naming
}

// New returns a Pusher; Run starts it.
func New(o Options) *Pusher {
	if o.Subject == nil {
		o.Subject = HTCJobs{}
	}
	p := &Pusher{Options: o}
	p.workers = &fairqueue.Pool[string]{
		Queue:   o.Queue,
		Size:    o.Workers,
		Backend: p.registryOf,
		Serve:   fairqueue.Each(p.Push),
	}
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

// Naming reports whether a reference is being given its new meaning for a key at this moment. Nothing else is pushed
// for a key for which Credentials returns ErrGone.
func (p *Pusher) Naming(key string) bool { return p.naming.is(key) }

// Resume continues what an earlier htcd left undone.
func (p *Pusher) Resume(ctx context.Context) error {
	return p.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		runs, err := p.Subject.Unpushed(tx)
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

// registryOf returns the registry of the next artifact of a key.
func (p *Pusher) registryOf(ctx context.Context, key string) string {
	item, err := p.next(ctx, key)
	if err != nil {
		return "" // the step will say so
	}
	return artifact.Host(item.Reference)
}

// next returns the next item of a key in this pass; ledger.ErrNotFound if there is none.
func (p *Pusher) next(ctx context.Context, key string) (item Item, err error) {
	return ledger.Get(ctx, p.Ledger, func(tx *ledger.Tx) (Item, error) {
		return p.Subject.Next(tx, key, p.passes.at(key))
	})
}
