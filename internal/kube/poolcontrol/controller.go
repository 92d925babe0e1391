package poolcontrol

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Options are the parts of a Controller.
type Options struct {
	reconciler.Common
	Informer  cache.SharedIndexInformer
	Objects   reconciler.Objects[*v1alpha1.HTCPool, v1alpha1.HTCPoolStatus]
	Jobs      Jobs
	Schedds   Schedds
	Collector string                        // the usual one, as htcd's flags name it
	Check     func(*v1alpha1.HTCPool) error // what is wrong with a pool, so that nothing is sent by it
	Log       zerolog.Logger
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
	Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error)
	ScheddName(ctx context.Context, id schedd.Identity) (string, error)
	Ping(ctx context.Context, id schedd.Identity, p schedd.Permission) (account string, err error)
	Known() map[schedd.Endpoint]backend.Reachability
}

// Controller keeps the HTCPools. Use New.
type Controller struct {
	Options
	*engine
	news     chan struct{} // signalled when a pool has changed
	commands commands
}

// What all kinds share.
type (
	engine  = reconciler.Reconciler[*v1alpha1.HTCPool, v1alpha1.HTCPoolStatus, Load]
	options = reconciler.Options[*v1alpha1.HTCPool, v1alpha1.HTCPoolStatus]
)

// New returns a controller; Run starts it.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, news: make(chan struct{}, 1)}
	var err error
	c.engine, err = reconciler.New[*v1alpha1.HTCPool, v1alpha1.HTCPoolStatus, Load](options{
		Kind: kind{
			c,
		},
		Name:     "HTCPool",
		Label:    "pool",
		Common:   o.Common,
		Informer: o.Informer,
		Objects:  o.Objects,
		Log:      o.Log,
	})
	return c, err
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
	var group errgroup.Group
	c.engine.Go(context.WithoutCancel(ctx), &group)
	group.Go(func() error { every(ctx, betweenReports, nil, func(context.Context, bool) { c.WakeAll() }); return nil })
	group.Go(func() error { every(ctx, betweenPasses, c.news, c.follow); return nil })
	group.Go(func() error { every(ctx, betweenAsking, nil, c.ask); return nil })
	<-ctx.Done()
	c.engine.ShutDown()
	defer c.commands.wait()
	return group.Wait()
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
