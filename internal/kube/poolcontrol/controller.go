package poolcontrol

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Options are the parts of a Controller.
type Options struct {
	Pools       Pools
	Objects     Objects
	Jobs        Jobs
	Schedds     Schedds
	Credentials backend.Credentials
	Ledger      Ledger
	Collector   string                        // the usual one, as htcd's flags name it
	Check       func(*v1alpha1.HTCPool) error // what is wrong with a pool, so that nothing is sent by it
	Log         zerolog.Logger
	Now         func() time.Time
}

// Pools lists the HTCPools. They are shared: copy before changing.
type Pools interface {
	List() []*v1alpha1.HTCPool
	// Default returns the one for HTCJobs that name none; nil: there is none.
	Default() *v1alpha1.HTCPool
}

// Objects changes HTCPools in the apiserver.
type Objects interface {
	SetStatus(ctx context.Context, pool *v1alpha1.HTCPool, status v1alpha1.HTCPoolStatus) (*v1alpha1.HTCPool, error)
}

// Jobs knows the HTCJobs, and the HTCWorkflows.
type Jobs interface {
	// PoolLoad returns how full a pool is and why nothing is sent by it.
	PoolLoad(ctx context.Context, pool string) (admission.Load, error)
	// CheckSoon makes HTCondor be asked about a run.
	CheckSoon(run ledger.Run)
}

// Schedds are HTCondor's, as backend.Answering has them.
type Schedds interface {
	HoldIdle(ctx context.Context, id schedd.Identity, constraint, reason string) error
	ReleaseHeld(ctx context.Context, id schedd.Identity, constraint, reason string) error
	ScheddName(ctx context.Context, id schedd.Identity) (string, error)
	Answers(ctx context.Context, id schedd.Identity) error
	Known() map[schedd.Endpoint]backend.Reachability
}

// Ledger is read for runs to hold and to release.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Controller keeps the HTCPools. Use New.
type Controller struct {
	Options
	news chan struct{} // signalled when a pool has changed

	mu       sync.Mutex
	written  map[types.UID]written
	loads    []Load
	commands commands
}

// New returns a controller; Run starts it.
func New(o Options) *Controller {
	return &Controller{Options: o, news: make(chan struct{}, 1), written: map[types.UID]written{}}
}

// PoolsChanged makes the controller look at the pools at once.
func (c *Controller) PoolsChanged() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// How often things are looked at that nothing announces.
const (
	betweenReports = time.Second
	betweenPasses  = 2 * time.Second
	betweenAsking  = 10 * time.Second

	askAgain = time.Minute // a schedd that nothing else has asked since
)

// Run works until ctx ends. The pools must be known.
func (c *Controller) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { every(ctx, betweenReports, nil, c.report) })
	parts.Go(func() { every(ctx, betweenPasses, c.news, c.follow) })
	parts.Go(func() { every(ctx, betweenAsking, nil, c.ask) })
	parts.Wait()
	c.commands.wait()
	return nil
}

// every calls fn at once, at that interval, and when there is news.
func every(ctx context.Context, interval time.Duration, news <-chan struct{}, fn func(ctx context.Context, news bool)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for fn(ctx, true); ; {
		select {
		case <-ctx.Done():
			return
		case <-news:
			fn(ctx, true)
		case <-tick.C:
			fn(ctx, false)
		}
	}
}
