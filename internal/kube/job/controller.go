package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/keymutex"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/logspod"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/output/fetch"
	"htc.cern.ch/htcd/internal/output/push"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/matching"
	"htc.cern.ch/htcd/internal/target/pool"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// Options are the parts of a Controller.
type Options struct {
	Site        site.Site
	Namespace   string         // the one the informer watches; empty: all
	Staging     string         // has a subdirectory for every run
	Staged      *output.Shares // of the volume of Staging
	Workers     int            // HTCJobs synced in parallel
	Submitters  int            // actions in parallel, for each class at each schedd
	Output      output.Store   // where the output of jobs is kept; not fetched if it has no root
	Shares      *output.Shares // of the volume of Output
	Fetchers    int            // HTCJobs whose output is fetched in parallel, at each schedd
	KeepFree    int64          // bytes that inputs leave free on the volume of Staging; 0: see output.Reserve
	LogsPods    logspod.Maker
	Pools       pool.Known // nil: there are no HTCPools
	Quota       Quota      // nil: there is no quota outside of htcd
	Informer    cache.SharedIndexInformer
	Objects     Objects
	Events      Events
	Ledger      Ledger
	Schedd      backend.Schedd
	Credentials backend.Credentials
	Secrets     backend.OwnSecrets
	ConfigMaps  inputs.ConfigMaps
	JobSecrets  inputs.Secrets // those that jobs may have
	Artifacts   inputs.Artifacts
	Matching    *matching.Watch // why jobs wait for a slot; run by others
	Registries  push.Registries // to which outputs are pushed
	Log         zerolog.Logger
	Now         func() time.Time
	Observer    Observer // for metrics
	// FullCrosscheck is how often a pass asks about all jobs, not only about those that have changed; 0: always.
	FullCrosscheck time.Duration
	// Most is the most that a schedd is asked; the zero value: no bound.
	Most backend.Pace
	// FinalizerAtCreation says that the apiserver gives new HTCJobs our finalizer.
	FinalizerAtCreation bool
}

// Ledger stores runs and procs.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Objects changes HTCJobs in the apiserver.
type Objects interface {
	// AddFinalizer returns the object as it is in the apiserver now, never from a cache.
	AddFinalizer(ctx context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error)
	RemoveFinalizer(ctx context.Context, job *v1alpha1.HTCJob) error
	SetStatus(ctx context.Context, job *v1alpha1.HTCJob, status v1alpha1.HTCJobStatus) (*v1alpha1.HTCJob, error)
	// Delete deletes exactly the given version of the object; it is a conflict if the object has changed since.
	Delete(ctx context.Context, job *v1alpha1.HTCJob) error
	// Exists asks the apiserver whether the object with that UID is still there.
	Exists(ctx context.Context, namespace, name, uid string) (bool, error)
	// Version returns the version that the apiserver, never a cache, has of the HTCJobs of a namespace, empty for all.
	Version(ctx context.Context, namespace string) (string, error)
	// Each calls fn for every HTCJob with that namespace and name, either empty for any, as it is in the apiserver.
	Each(ctx context.Context, namespace, name string, fn func(*v1alpha1.HTCJob) error) error
}

// Events tells the user what happened to an HTCJob.
type Events interface {
	Normal(job *v1alpha1.HTCJob, reason, message string)
	Warning(job *v1alpha1.HTCJob, reason, message string)
}

// Controller turns HTCJobs into HTCondor jobs and keeps their status up to date.
type Controller struct {
	Options
	cache      cache.MutationCache // the informer's, plus our own writes it has not seen yet
	queue      fairqueue.Queue
	routine    fairqueue.Queue // HTCJobs to be looked at although nothing is known to have changed
	actions    *actionQueues
	checks     fairqueue.Queue                                   // UIDs of runs to ask HTCondor about soon
	actors     [reconciler.Classes]*fairqueue.Pool[sending.Line] // the workers of the action queues
	crosscheck *crosscheck.Checker
	checkers   *fairqueue.Pool[schedd.Endpoint]
	fetcher    *fetch.Fetcher
	pusher     *push.Pusher
	logs       fairqueue.Queue   // keys of HTCJobs whose spec.logsPod needs work
	secrets    fairqueue.Queue   // namespaces whose Secrets need an in-use check
	syncing    keymutex.KeyMutex // held while one worker reads the ledger and writes the status of an HTCJob
	memory     reconciler.Memory[remembered]
	answering  *backend.Answering // also Options.Schedd
	chooser    *backend.Chooser
	pools      pool.Chooser
	several    *backend.Several
	absences   recovery.Absences
	lookups    *recovery.Lookups
	sender     *sending.Sender
	tries      recovery.Tries
	limits     backend.Limits
	admission  *admission.Admission
	turns      fairqueue.Queue // pools whose line is to be looked at
	began      time.Time       // in the ledger's precision
	early      early

	waiters    inputs.Waiters
	stagings   inputs.Stagings
	prover     *backend.Prover
	freshness  *jobcredentials.Watch
	secretNews chan struct{} // signalled when a Secret has changed and needs to be checked
	keeper     *backend.Keeper
	orphans    *orphans.Guard
}

// Back-off after failures, per HTCJob.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// New returns a controller; Run starts it.
func New(o Options) (*Controller, error) {
	limiter := func() workqueue.TypedRateLimiter[string] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
	}
	fast := workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 10*time.Second)
	c := &Controller{
		Options: o, syncing: keymutex.NewHashed(256), began: o.Now().Truncate(time.Millisecond),
		cache:   cache.NewIntegerResourceVersionMutationCache(klog.Background(), o.Informer.GetStore(), o.Informer.GetIndexer(), time.Minute, false),
		queue:   fairqueue.New(fast),
		routine: fairqueue.New(limiter()),
		actions: newActionQueues(limiter),
		checks:  workqueue.NewTypedRateLimitingQueue(limiter()),

		logs:    fairqueue.New(limiter()),
		secrets: workqueue.NewTypedRateLimitingQueue(limiter()),
		turns:   workqueue.NewTypedRateLimitingQueue(limiter()),

		secretNews: make(chan struct{}, 1),
	}
	c.memory.UID = c.uid
	for e, queue := range c.actions.queues {
		act := func(ctx context.Context, key string) { c.actOne(ctx, reconciler.Class(e), key) }
		c.actors[e] = &fairqueue.Pool[sending.Line]{Queue: queue, Size: c.workers(reconciler.Class(e)), More: sending.Line.More, Backend: c.lineOf(reconciler.Class(e)), Serve: fairqueue.Each(act)}
	}
	if o.Artifacts != nil {
		o.Artifacts.OnTurn(c.inputTurned)
	}
	c.checkers = &fairqueue.Pool[schedd.Endpoint]{Queue: c.checks, Size: 1, Batch: crosscheck.MaxNamed, Backend: c.backendOfRun, Serve: c.checkSome, Rest: rest}
	c.admission = c.newAdmission()
	c.answering = &backend.Answering{Schedd: o.Schedd, Now: o.Now, Any: o.Credentials.Any, Turned: c.endpointTurned, Most: o.Most}
	c.Schedd = c.answering
	c.pools = pool.Chooser{Known: o.Pools, Rules: o.Site.PoolRules()}
	c.chooser = &backend.Chooser{Schedd: c.Schedd, Credentials: o.Credentials}
	c.several = &backend.Several{Schedd: c.answering, Credentials: o.Credentials, Limits: &c.limits, Open: backend.OpenJobs(o.Ledger), Now: o.Now}
	c.orphans = &orphans.Guard{Ledger: o.Ledger, Namespace: o.Namespace, There: c.uids, Now: o.Now, Many: c.manyVanished}
	c.prover = &backend.Prover{Credentials: o.Credentials, Accounts: c.dependedOn, Turned: c.accountsTurned}
	c.freshness = &jobcredentials.Watch{Secrets: o.JobSecrets, Holders: c.holders, Changed: c.queue.Add, Served: jobcredentials.Served(o.Site.CallbackURL), Now: o.Now}
	c.keeper = &backend.Keeper{Secrets: o.Secrets, Needed: []func(context.Context, secrets.Own) (bool, error){c.needsSecret}, Denied: c.secretsDenied}
	c.crosscheck = &crosscheck.Checker{Ledger: o.Ledger, Schedd: c.Schedd, As: c.questioner, Now: o.Now, Observer: checked{c}, Whole: o.FullCrosscheck}
	c.fetcher = fetch.New(fetch.Options{
		Store: o.Output, Shares: o.Shares, MaxOutput: o.Site.MaxOutput,
		Queue: fairqueue.New(limiter()), Workers: o.Fetchers, Endpoint: c.backendOf(reconciler.Asking),
		Ledger: o.Ledger, Schedd: c.Schedd, Credentials: o.Credentials, Observer: fetched{c}, Log: o.Log, Now: o.Now,
	})
	c.pusher = push.New(push.Options{
		Store: o.Output, Queue: fairqueue.New(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastPush)), Workers: pushers,
		Ledger: o.Ledger, Registries: o.Registries, Credentials: c.registryCredentials, Observer: pushed{c}, Log: o.Log,
	})
	c.sender = &sending.Sender{
		Kind: v1alpha1.Kind, Schedd: c.Schedd, Answering: c.answering, Owners: backend.NewOwners(c.Schedd, o.Credentials), Staging: o.Staging, Shares: o.Staged, Limits: &c.limits, Tries: &c.tries, Absences: &c.absences,
		Newest: c.crosscheck.NewestKnown, NewestNow: c.crosscheck.NewestHistory,
		Repaired: func() { o.Observer.Repaired(crosscheck.HalfSpooled) }, Now: o.Now, Log: o.Log,
	}
	c.lookups = &recovery.Lookups{Ledger: o.Ledger, Schedd: c.Schedd, As: c.questioner, Tries: &c.tries, Now: o.Now}
	if _, err := o.Informer.AddEventHandler(c.events()); err != nil {
		return nil, fmt.Errorf("watch HTCJobs: %w", err)
	}
	return c, nil
}

// events queues what the informer reports. Changes go to a queue of their own: however many HTCJobs there are, a change does
// not wait for the pass over all of them at the start or at a resync.
func (c *Controller) events() cache.ResourceEventHandler {
	enqueue := func(queue fairqueue.Queue, object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initially bool) {
			if initially {
				enqueue(c.routine, object)
			} else {
				enqueue(c.queue, object)
				c.sourceChanged(nil, object.(*v1alpha1.HTCJob))
			}
		},
		UpdateFunc: func(before, now any) {
			was, is := before.(*v1alpha1.HTCJob), now.(*v1alpha1.HTCJob)
			switch {
			case was.ResourceVersion != is.ResourceVersion:
				enqueue(c.queue, is)
				c.sourceChanged(was, is)
				if !asBefore(was, is) {
					c.stagings.Stop(is.Namespace + "/" + is.Name)
				}
			case !is.Status.Phase.Terminal() || is.DeletionTimestamp != nil:
				enqueue(c.routine, is)
			}
		},
		DeleteFunc: func(object any) {
			job, was := orphans.Deleted(object, v1alpha1.Finalizer)
			if was {
				c.orphans.Deletions.Note(job.GetNamespace()+"/"+job.GetName(), string(job.GetUID()))
			}
			if job != nil {
				c.stagings.Stop(job.GetNamespace() + "/" + job.GetName())
			}
			enqueue(c.queue, object)
			c.lookAtSecrets(object)
			if job, is := object.(*v1alpha1.HTCJob); is {
				c.sourceChanged(job, nil)
			}
		},
	}
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
	for range c.Workers {
		group.Go(func() error { fairqueue.Drain(work, c.queue, c.syncOne); return nil })
		group.Go(func() error { fairqueue.Drain(work, c.routine, c.syncOne); return nil })
	}
	for range logsMakers {
		group.Go(func() error { fairqueue.Drain(work, c.logs, c.logsOne); return nil })
	}
	group.Go(func() error { fairqueue.Drain(work, c.secrets, c.secretsOne); return nil })
	group.Go(func() error { fairqueue.Drain(work, c.turns, c.turn); return nil })
	group.Go(func() error { c.freshness.Run(ctx); return nil })
	group.Go(func() error { c.prover.Run(ctx, c.secretNews); return nil })
	for _, workers := range c.actors {
		group.Go(func() error { workers.Run(work); return nil })
	}
	group.Go(func() error { c.checkers.Run(work); return nil })
	group.Go(func() error { c.fetcher.Run(ctx); return nil })
	group.Go(func() error { c.pusher.Run(ctx); return nil })
	<-ctx.Done()
	c.stagings.Close()
	c.logs.ShutDown()
	c.secrets.ShutDown()
	c.turns.ShutDown()
	c.queue.ShutDown()
	c.routine.ShutDown()
	c.actions.shutDown()
	c.checks.ShutDown()
	return group.Wait()
}

// syncOne is sync with its back-off.
func (c *Controller) syncOne(ctx context.Context, key string) {
	err := c.sync(ctx, key)
	if err == nil {
		c.queue.Forget(key)
		return
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		c.Log.Warn().Err(err).Str("job", key).Msg("status not written, trying again")
	}
	c.queue.AddRateLimited(key)
}

// retryNow ends the back-off of every HTCJob whose blocker satisfies such, and of all fetches.
func (c *Controller) retryNow(such func(reconciler.Blocker) bool) {
	for key, b := range c.memory.Blocked(reconciler.Acting, such) {
		c.actions.forget(key)
		c.actions.add(b.Class, key)
	}
	for key := range c.memory.Blocked(reconciler.Fetching, func(reconciler.Blocker) bool { return true }) {
		c.fetcher.Retry(key)
	}
}

// wakeAll queues every HTCJob that has not ended, after something changed that concerns them all.
func (c *Controller) wakeAll() {
	for _, object := range c.Informer.GetStore().List() {
		if job := object.(*v1alpha1.HTCJob); !job.Status.Phase.Terminal() {
			c.routine.Add(job.Namespace + "/" + job.Name)
		}
	}
}

// wakeLimited lets two HTCJobs that wait at a limit ask again: each one that is sent wakes two more.
func (c *Controller) wakeLimited() {
	woken := 0
	for key, b := range c.memory.Blocked(reconciler.Acting, atScheddsLimit) {
		if woken++; woken > 2 {
			return
		}
		c.actions.forget(key)
		c.actions.add(b.Class, key)
	}
}
