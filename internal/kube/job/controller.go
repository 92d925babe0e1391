package job

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/logspod"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/output/fetch"
	"htc.cern.ch/htcd/internal/output/push"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// Options are the parts of a Controller.
type Options struct {
	reconciler.Common
	Output     output.Store // where the output of jobs is kept; not fetched if it has no root
	Fetchers   int          // see fetch.Options.Workers
	LogsPods   logspod.Maker
	Informer   cache.SharedIndexInformer
	Objects    Objects
	Events     reconciler.Events[*v1alpha1.HTCJob]
	Secrets    backend.OwnSecrets
	ConfigMaps inputs.ConfigMaps
	JobSecrets inputs.Secrets // those that jobs may have
	Artifacts  inputs.Artifacts
	Uploads    inputs.Uploads
	Registries push.Registries // to which outputs are pushed
	Log        zerolog.Logger
	Observer   Observer // for metrics
	// FinalizerAtCreation says that the apiserver gives new HTCJobs our finalizer.
	FinalizerAtCreation bool
}

// Objects changes HTCJobs in the apiserver.
type Objects interface {
	reconciler.Objects[*v1alpha1.HTCJob, v1alpha1.HTCJobStatus]
	// Version returns the version that the apiserver, never a cache, has of the HTCJobs of a namespace, empty for all.
	Version(ctx context.Context, namespace string) (string, error)
}

// Controller turns HTCJobs into HTCondor jobs and keeps their status up to date.
type Controller struct {
	Options
	*engine
	checks     fairqueue.Queue // UIDs of runs to ask HTCondor about soon
	crosscheck *crosscheck.Checker
	checkers   *fairqueue.Pool[schedd.Endpoint]
	fetcher    *fetch.Fetcher
	pusher     *push.Pusher
	logs       fairqueue.Queue // keys of HTCJobs whose spec.logsPod needs work
	secrets    fairqueue.Queue // namespaces whose Secrets need an in-use check
	pools      pool.Chooser
	lookups    *recovery.Lookups
	sender     *sending.Sender
	admission  *admission.Admission
	turns      fairqueue.Queue // pools whose line is to be looked at
	began      time.Time       // in the ledger's precision
	early      early

	waiters   inputs.Waiters
	freshness *jobcredentials.Watch
	keeper    *backend.Keeper
}

// What all kinds share.
type (
	engine  = reconciler.Reconciler[*v1alpha1.HTCJob, v1alpha1.HTCJobStatus, remembered]
	options = reconciler.Options[*v1alpha1.HTCJob, v1alpha1.HTCJobStatus]
)

// New returns a controller; Run starts it.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options: o,
		began:   o.Now().Truncate(time.Millisecond),
		checks:  reconciler.NewQueue(),
		logs:    reconciler.NewQueue(),
		secrets: reconciler.NewQueue(),
		turns:   reconciler.NewQueue(),
	}
	var err error
	c.engine, err = reconciler.New[*v1alpha1.HTCJob, v1alpha1.HTCJobStatus, remembered](options{
		Kind: kind{c}, Owned: kind{c}, Name: v1alpha1.Kind, Label: "job", Common: o.Common, Deleters: deleters,
		Informer: o.Informer, Events: o.Events, Objects: o.Objects, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	if o.Artifacts != nil {
		o.Artifacts.OnTurn(c.Retry)
	}
	c.checkers = &fairqueue.Pool[schedd.Endpoint]{
		Queue:   c.checks,
		Size:    1,
		Batch:   crosscheck.MaxNamed,
		Backend: c.backendOfRun,
		Serve:   c.checkSome,
		Rest:    rest,
	}
	c.admission = c.newAdmission()
	o.OnTurned(c.endpointTurned)
	o.OnPassed(c.RetryLimited)
	c.pools = o.Chooses()
	c.freshness = c.Freshness(o.JobSecrets, c.watchedOf)
	c.keeper = &backend.Keeper{
		Secrets: o.Secrets,
		Needed:  []func(context.Context, secrets.Own) (bool, error){c.needsSecret},
		Denied:  c.secretsDenied,
	}
	c.crosscheck = o.Checks(ledger.HTCJobs, c.Answering, checked{c})
	c.crosscheck.GoesOn = func(run ledger.Run, proc int) error { return c.fetcher.Outdate(run, proc) }
	c.fetcher = fetch.New(fetch.Options{
		Store: o.Output, Shares: o.Shares, MaxOutput: o.Site.MaxOutput,
		Queue: reconciler.NewQueue(), Workers: o.Fetchers, Endpoint: c.backendOf(reconciler.Asking),
		Ledger: o.Ledger, Schedd: c.Answering, Credentials: o.Credentials, Observer: fetched{c}, Log: o.Log, Now: o.Now,
		Gone: func(ctx context.Context, run ledger.Run, asked time.Time) error {
			return c.sender.Gone(ctx, run, asked)
		},
	})
	c.pusher = c.Pusher(push.Options{
		Store: o.Output, Registries: o.Registries, Credentials: c.registryCredentials,
	}, o.Observer)
	c.sender = o.Sends(c.Answering, c.crosscheck)
	c.sender.Kind, c.sender.Output, c.sender.Log = v1alpha1.Kind, o.Output, o.Log
	c.sender.Refused = carryRefused
	c.sender.Repaired = func() { o.Observer.Repaired(crosscheck.HalfSpooled, 1) }
	c.lookups = &recovery.Lookups{Ledger: o.Ledger, Schedd: c.Answering, As: c.Questioner, Tries: &c.Tries, Now: o.Now}
	return c, nil
}

// Run works until ctx ends, then finishes what is in flight: a shutdown interrupts no condor_submit. The caller bounds
// that time. The informer must be running.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.Informer.HasSynced) {
		return nil
	}
	if err := c.adoptOrphans(ctx); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	if c.tryEarly(ctx); ctx.Err() != nil {
		return nil
	}
	if err := errors.Join(c.fetcher.Resume(ctx), c.pusher.Resume(ctx)); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	c.recallLine()
	work := context.WithoutCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { c.removeAside(); return nil })
	c.engine.Go(work, &group)
	for range logsMakers {
		group.Go(func() error { fairqueue.Drain(work, c.logs, c.logsOne); return nil })
	}
	group.Go(func() error { fairqueue.Drain(work, c.secrets, c.secretsOne); return nil })
	group.Go(func() error { fairqueue.Drain(work, c.turns, c.turn); return nil })
	group.Go(func() error { c.freshness.Run(ctx); return nil })
	group.Go(func() error { c.checkers.Run(work); return nil })
	group.Go(func() error { c.fetcher.Run(ctx); return nil })
	group.Go(func() error { c.pusher.Run(ctx); return nil })
	<-ctx.Done()
	c.logs.ShutDown()
	c.secrets.ShutDown()
	c.turns.ShutDown()
	c.engine.ShutDown()
	c.checks.ShutDown()
	return group.Wait()
}

// retryNow ends the back-off of every HTCJob whose blocker satisfies such, and of all fetches.
func (c *Controller) retryNow(such func(reconciler.Blocker) bool) {
	c.RetryAll(such)
	c.retryFetches()
}

func (c *Controller) retryFetches() {
	for key := range c.Memory.Blocked(reconciler.Fetching, func(reconciler.Blocker) bool { return true }) {
		c.fetcher.Retry(key)
	}
}
