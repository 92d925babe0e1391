package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/crosscheck/nodes"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/output/push"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Options are the parts of a Controller.
type Options struct {
	reconciler.Common
	Output     output.Store // where the output of nodes is kept; not fetched if it has no root
	Informer   cache.SharedIndexInformer
	Objects    reconciler.Objects[*v1alpha1.HTCWorkflow, v1alpha1.HTCWorkflowStatus]
	Events     reconciler.Events[*v1alpha1.HTCWorkflow]
	Schedd     backend.Schedd
	Keeper     *backend.Keeper
	ConfigMaps inputs.ConfigMaps
	JobSecrets inputs.Secrets // those that are marked for jobs
	Jobs       inputs.Jobs    // HTCJobs whose output steps have as inputs
	JobOutput  inputs.Store   // that of HTCJobs
	Artifacts  inputs.Artifacts
	Uploads    inputs.Uploads
	Registries Registries          // to which steps push
	Ephemeral  artifact.Registries // those from which a deletion takes what was pushed
	Observer   Observer            // for metrics
	// SecretTouched is told of a namespace whose Secrets may no longer be needed.
	SecretTouched func(namespace string)
	Log           zerolog.Logger
}

// Observer is notified of what happens, for metrics. Its methods are called by several goroutines and must not block.
type Observer interface {
	// Repaired: so much that was unnoticed or interrupted was put right.
	Repaired(kind crosscheck.Repair, times int)
	// Used: nodes of a namespace, whose ends HTCondor has told, had the cores that they had asked for so long, in
	// seconds of one core.
	Used(namespace string, coreSeconds int64)
	reconciler.PushMetrics
	// NodesPassed: a pass over the nodes of one schedd's DAGs has ended.
	NodesPassed(pass string, endpoint schedd.Endpoint, err error)
	// DAGSubmitted: the schedd has a DAG of so many nodes.
	DAGSubmitted(nodes int)
	// RuleActed: a rule of a workflow has acted.
	RuleActed(action v1alpha1.RuleAction)
	// NodesFetched: the output of so many nodes is here.
	NodesFetched(nodes int)
	// NodeFetchFailed: output of nodes cannot be fetched now, which will be tried again.
	NodeFetchFailed(reason string)
}

// Controller turns HTCWorkflows into DAGs and keeps their status up to date.
type Controller struct {
	Options
	*engine
	fetches fairqueue.Queue
	// keys of workflows whose results are to be summed up, and whose rules are to be looked at
	measures  fairqueue.Queue
	checks    fairqueue.Queue // keys of workflows whose DAGs HTCondor is to be asked about soon
	fetchers  *fairqueue.Pool[schedd.Endpoint]
	checkers  *fairqueue.Pool[schedd.Endpoint]
	pools     pool.Chooser
	began     time.Time
	sender    *sending.Sender
	dags      *crosscheck.Checker // of DAGMan's own jobs
	nodes     *nodes.Checker
	pusher    *push.Pusher
	freshness *jobcredentials.Watch
}

// What all kinds share.
type (
	engine  = reconciler.Reconciler[*v1alpha1.HTCWorkflow, v1alpha1.HTCWorkflowStatus, remembered]
	options = reconciler.Options[*v1alpha1.HTCWorkflow, v1alpha1.HTCWorkflowStatus]
)

// New returns a controller; Run starts it.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options:  o,
		began:    o.Now().Truncate(time.Millisecond), // as the ledger keeps times
		fetches:  reconciler.NewQueue(),
		checks:   reconciler.NewQueue(),
		measures: reconciler.NewQueue(),
	}
	var err error
	c.engine, err = reconciler.New[*v1alpha1.HTCWorkflow, v1alpha1.HTCWorkflowStatus, remembered](options{
		Kind: kind{
			c,
		},
		Owned:    kind{c},
		Name:     v1alpha1.WorkflowKind,
		Label:    "workflow",
		Runs:     ledger.Workflows,
		Common:   o.Common,
		Informer: o.Informer,
		Events:   o.Events,
		Objects:  o.Objects,
		Log:      o.Log,
	})
	if err != nil {
		return nil, err
	}
	c.fetchers = &fairqueue.Pool[schedd.Endpoint]{
		Queue: c.fetches, Size: 1, Spare: true, Backend: c.backendOf, Serve: fairqueue.Each(c.fetchOne),
	}
	c.checkers = &fairqueue.Pool[schedd.Endpoint]{
		Queue: c.checks, Size: 1, Batch: crosscheck.MaxNamed, Backend: c.backendOf, Serve: c.checkSome,
		Rest: func(took time.Duration) { time.Sleep(backend.Rest(took)) },
	}
	if o.Artifacts != nil {
		o.Artifacts.OnTurn(c.Retry)
	}
	o.OnTurned(c.EndpointTurned)
	o.OnPassed(c.RetryLimited)
	c.pools = o.Chooses()
	c.dags = o.Checks(ledger.Workflows, o.Schedd, checked{c})
	c.sender = o.Sends(o.Schedd, c.dags)
	c.sender.Kind, c.sender.Output, c.sender.Log = v1alpha1.WorkflowKind, o.Output, o.Log
	c.sender.Repaired = func() { o.Observer.Repaired(crosscheck.HalfSpooled, 1) }
	c.nodes = &nodes.Checker{
		Driver:   reconciler.Drives[crosscheck.Observer](o.Common, o.Schedd, followed{c}),
		Accounts: c.sender.Owners.AccountsOf, Started: c.dags.Started, Daemon: c.dags.Daemon,
	}
	o.Keeper.Needed = append(o.Keeper.Needed, c.needsSecret)
	c.pusher = c.Pusher(push.Options{
		Subject: dags{}, Store: o.Output, Registries: o.Registries, Credentials: c.registryCredentials,
	}, o.Observer)
	c.freshness = c.Freshness(o.JobSecrets, c.watchedOf)
	return c, nil
}

// Run works until ctx ends, then finishes what is in flight: a shutdown interrupts no condor_submit. The caller bounds
// that time. The informer must be running.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.Informer.HasSynced) {
		return nil
	}
	if err := errors.Join(c.resume(ctx), c.pusher.Resume(ctx)); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	if c.Output.Root != "" {
		if err := c.Output.Sweep(true); err != nil {
			c.Log.Warn().Err(err).Msg("what is left of broken-off fetches of workflows is not removed")
		}
	}
	work := context.WithoutCancel(ctx)
	var group errgroup.Group
	c.engine.Go(work, &group)
	group.Go(func() error { fairqueue.Drain(work, c.measures, c.measureOne); return nil })
	for _, workers := range []interface{ Run(context.Context) }{c.fetchers, c.checkers} {
		group.Go(func() error { workers.Run(work); return nil })
	}
	group.Go(func() error { c.freshness.Run(ctx); return nil })
	group.Go(func() error { c.pusher.Run(ctx); return nil })
	<-ctx.Done()
	c.engine.ShutDown()
	for _, queue := range []fairqueue.Queue{c.fetches, c.checks, c.measures} {
		queue.ShutDown()
	}
	return group.Wait()
}

// resume queues every workflow that the ledger knows: one that vanished while htcd was away causes no event.
func (c *Controller) resume(ctx context.Context) error {
	runs, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Run, error) {
		return tx.Runs(ledger.RunFilter{Kind: ledger.Workflows})
	})
	if err != nil {
		return fmt.Errorf("list DAGs: %w", err)
	}
	for _, run := range runs {
		if c.Namespace == "" || run.Namespace == c.Namespace {
			c.Changed.Add(keyOf(run))
			c.fetches.Add(keyOf(run))
		}
	}
	return nil
}

// Waiting counts, by queue, the workflows that wait for a worker.
func (c *Controller) Waiting() map[string]int {
	n := c.engine.Waiting()
	n["check"], n["fetch"], n["push"], n["measure"] = c.checkers.Waiting(), c.fetchers.Waiting(), c.pusher.Waiting(), c.measures.Len()
	return n
}

func keyOf(run ledger.Run) string { return run.Namespace + "/" + run.Name }
