package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
	"htc.cern.ch/htcd/internal/inputs/uploads"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/kube/kueue"
	"htc.cern.ch/htcd/internal/kube/logspod"
	"htc.cern.ch/htcd/internal/kube/poolcontrol"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/kube/workflow"
	"htc.cern.ch/htcd/internal/notify/traces"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/token"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/matching"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// loop is the control loop over a ledger, with its parts: what htcd run and htcd reconcile share. Nothing in it watches
// or works yet.
type loop struct {
	controller  *job.Controller
	informer    cache.SharedIndexInformer
	pools       *pools
	poolControl *poolcontrol.Controller
	secrets     *secrets.Watcher
	credentials backend.Credentials
	jobSecrets  *jobsecrets.Reader
	condor      *schedd.Client
	asked       *reconciler.Shared
	shares      *output.Shares // of output's room
	uploads     *uploads.Store
	staged      *output.Shares
	matching    *matching.Watch
	traces      *traces.Exporter // nil without --traces
	feeds       feeds
	kueue       *kueue.Kueue // nil without --kueue
	recorder    events.EventRecorder
	close       func() error

	workflows        *workflow.Controller
	workflowInformer cache.SharedIndexInformer
}

// proofs keeps tickets and tokens until it is closed.
func (o Options) proofs() *credential.Keeper {
	return &credential.Keeper{
		Tickets: krb.New(
			krb.Options{BinDir: o.CondorBinDir, Krb5Config: o.Krb5Config, Realms: o.Realms, Dir: o.TicketDir},
		),
		Tokens: token.New(token.Options{Dir: o.TicketDir}),
	}
}

// accounts are the Secrets that jobs may be sent with.
func (o Options) accounts() secrets.Options {
	return secrets.Options{
		Namespace: o.KinitSecretNamespace, Name: o.KinitSecret, Directory: o.CredentialDir,
		PerNamespace: o.NamespaceSecrets, Watched: o.Namespace, Further: o.PoolSecrets,
	}
}

// condor is how HTCondor's commands are run.
func (o Options) condor() schedd.Options {
	return schedd.Options{
		BinDir: o.CondorBinDir, CondorConfig: o.CondorConfig, Krb5Config: o.Krb5Config,
		Pool: o.Collector, Schedd: o.Schedd, Command: o.ScheddCommand, Timeout: o.CommandTimeout,
	}
}

// Site is what the options say about all jobs.
func (o Options) Site() (site.Site, error) {
	authorities, _, err := o.callbackCA()
	if err != nil {
		return site.Site{}, fmt.Errorf("--callback-ca: %w", err)
	}
	registries, err := artifact.ParseRegistries(o.AllowRegistries)
	if err != nil {
		return site.Site{}, fmt.Errorf("--allow-registries: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return site.Site{}, err
	}
	accounts := o.accounts()
	return site.Site{
		ImageRegistry:    strings.TrimSuffix(o.ImageRegistry, "/"),
		Binds:            o.Binds,
		CallbackURL:      o.CallbackURL,
		CallbackCA:       authorities,
		CallbackDeadline: o.CallbackDeadline,
		CallbackStart:    o.CallbackStart,
		Traces:           o.Traces != "",
		Sender:           o.ShipSender,
		Program:          program,
		AllowOptions:     o.AllowHTCOpts,
		Attributes:       o.Attributes,
		AllowImages:      o.AllowImages,
		AllowSchemes:     o.AllowSchemes,
		WritableRoot:     o.WritableRoot,
		TrustCreator:     o.TrustCreator,
		Policy: backend.Policy{
			Collector:   o.Collector,
			Schedd:      o.Schedd,
			AllowPools:  o.AllowPools,
			PoolSecrets: accounts.Named(),
		},
		MaxQueue:     o.MaxQueue,
		FactoryAbove: o.FactoryAbove,
		MaxOpen:      o.MaxOpen,
		MaxOutput:    o.MaxOutput.Value() >> 20,
		MaxInput:     o.MaxInput.Value(),
		Inputs:       inputs.Rules{Accounts: accounts.Names(), NoOutput: o.store().Root == "", Registries: registries},
	}, nil
}

func (d *daemon) newLoop(ctx context.Context, book reconciler.Ledger) (*loop, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(apiserver.NewPacedEvents(&events.EventSinkImpl{Interface: d.core.EventsV1()}))
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	proofs := d.o.proofs()
	var err error
	accounts := d.o.accounts()
	l := &loop{
		informer: d.jobs.NewInformer(d.o.Namespace, d.o.Resync, d.counts.Watched, v1alpha1.Ours),
		workflowInformer: d.jobs.NewWorkflowInformer(
			d.o.Namespace,
			d.o.Resync,
			d.counts.WorkflowsWatched,
			v1alpha1.Ours,
		),
		secrets:    secrets.NewWatcher(d.core, accounts),
		jobSecrets: jobsecrets.NewReader(d.core.CoreV1(), accounts.Names()),
		recorder:   broadcaster.NewRecorder(scheme, "htcd"),
		close:      func() error { defer broadcaster.Shutdown(); return proofs.Close() },
	}
	if l.pools, err = d.newPools(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if l.kueue, err = d.newKueue(l); err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.credentials = &backend.SecretCredentials{Secrets: l.secrets, Proofs: proofs, Asked: d.counts.Ticket}
	commands := d.o.condor()
	commands.Ran = d.counts.Command
	l.condor = schedd.New(commands)
	l.matching = &matching.Watch{Ledger: book, Condor: l.condor, Credentials: l.credentials, Now: time.Now}
	condor := d.counts.Schedd(l.condor)
	if d.fence != nil {
		condor, book = fencedSchedd{condor, d.fence}, fencedLedger{book, d.fence}
	}
	site, err := d.o.Site()
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	if d.o.ownAuthority() {
		own, err := d.o.loadOwn()
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		site.CallbackCA, site.CallbackAlso = own.Text(), true
	}
	l.shares, l.staged = d.o.shares()
	if l.uploads, err = d.newUploads(l); err != nil {
		return nil, errors.Join(err, l.close())
	}
	most := backend.Pace{Commands: d.o.ScheddCommands, PerSecond: d.o.ScheddRate}
	l.asked = reconciler.NewShared(condor, l.credentials, book, most, time.Now)
	if l.feeds, err = d.newFeeds(l.condor); err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.asked.Mirrors = l.feeds.mirror
	common := reconciler.Common{
		Shared: l.asked, Site: &site, Namespace: d.o.Namespace, Workers: d.o.Workers, Actors: d.o.Submitters,
		Staging: d.o.stagingDir(), Staged: l.staged, Shares: l.shares, Pools: l.pools, Ledger: book,
		Credentials: l.credentials, Matching: l.matching, Now: time.Now, FullCrosscheck: d.o.FullCrosscheck,
		SameLedger: d.sameLedger, Quota: l.quota(),
	}
	if d.o.Traces != "" {
		l.traces = traces.New(
			d.o.Traces,
			d.o.Version,
			d.counts.Traced,
			d.log.With().Str("component", "traces").Logger(),
		)
		common.Traced = l.traces.Add
	}
	l.controller, err = job.New(job.Options{
		Common:              common,
		FinalizerAtCreation: d.o.FinalizerSet, Output: d.o.store(), Fetchers: d.o.Fetchers,
		LogsPods: logspod.Maker{Image: d.o.LogsPodImage, Client: d.core.CoreV1()},
		Informer: l.informer, Objects: apiserver.HTCJobs(d.jobs, d.counts.StatusWritten),
		Events:  apiserver.Events[*v1alpha1.HTCJob]{Recorder: l.recorder},
		Secrets: l.secrets,
		ConfigMaps: inputs.APIConfigMaps{
			Client: d.core.CoreV1(),
		}, JobSecrets: l.jobSecrets, Uploads: l.uploads, Artifacts: artifact.NewFetcher(site.Inputs.Registries),
		Registries: artifact.NewPusher(site.Inputs.Registries),
		Log:        d.log.With().Str("component", "kube").Logger(),
		Observer:   d.counts,
	})
	if err != nil {
		_ = l.close() // nothing has started
		return nil, err
	}
	if err := d.newWorkflows(l, common); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if l.poolControl, err = d.newPoolControl(l, common); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}
