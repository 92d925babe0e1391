package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/metrics"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd/tool"
	"htc.cern.ch/htcd/internal/serve/control"
)

// daemon is the composition root: it builds the parts and knows the order in which they start and stop.
type daemon struct {
	o      Options
	log    zerolog.Logger
	config *rest.Config
	core   kubernetes.Interface
	jobs   *v1alpha1.Client
	health health
	counts *metrics.Metrics
	fence  *fence // nil without leader election

	lease      leaseTimes
	sameLedger bool // it is as the last htcd has closed it: none was put back

	labelling sync.Mutex
}

func newDaemon(o Options, log zerolog.Logger) (*daemon, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig}, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	if o.OwnSpace == "" {
		if o.OwnSpace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	if o.KinitSecretNamespace == "" {
		o.KinitSecretNamespace = o.OwnSpace
	}
	config.UserAgent = "htcd/" + o.Version
	config.QPS = -1 // the apiserver's own priority and fairness decide
	// it would warn about the finalizer's name, which the first operator chose
	config.WarningHandler = rest.NoWarnings{}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	jobs, err := v1alpha1.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	counts := metrics.New(metrics.Build{Version: o.Version, Go: runtime.Version()})
	return &daemon{
		o: o, log: log, config: config, core: core, jobs: jobs,
		counts: counts, health: health{metrics: counts.Handler()},
		lease: newLeaseTimes(),
	}, nil
}

// run works until ctx ends, then finishes work in flight within the bound.
func (d *daemon) run(ctx context.Context) error {
	listener, err := net.Listen("tcp", d.o.HealthListen)
	if err != nil {
		return fmt.Errorf("--health-listen: %w", err)
	}
	server := &http.Server{
		Handler: d.health.handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	stop, err := d.profiles()
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	d.log.Info().Str("version", d.o.Version).Str("health", listener.Addr().String()).Msg("started")
	if !d.o.LeaderElect {
		return d.work(ctx)
	}
	return d.lead(ctx, d.work)
}

// work is everything that only one htcd at a time may do. If it ends because the ledger is damaged, the file has been
// put aside and htcd can start again.
func (d *daemon) work(ctx context.Context) error {
	d.counts.Leading(true)
	defer d.counts.Leading(false)
	d.health.unready("opening the ledger")
	book, err := d.openLedger(ctx)
	if err != nil || book == nil {
		return err
	}
	err = d.workWith(ctx, book)
	err = errors.Join(err, book.Close())
	switch {
	case errors.Is(err, ledger.ErrLost):
		d.log.Error().Err(err).Str("ledger", d.o.LedgerFile()).Msg(
			"the ledger file is gone, or another is in its place; " +
				"going on with what is there, and with what the HTCJobs and the schedd know",
		)
	case errors.Is(err, ledger.ErrCorrupt):
		err = errors.Join(err, d.quarantine(err))
	}
	return err
}

func (d *daemon) workWith(ctx context.Context, book *ledger.Ledger) (err error) {
	listener, err := d.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	outputs, err := d.listenOutput()
	if err != nil {
		return err
	}

	socket, err := control.Listen(d.o.Socket())
	if err != nil {
		return fmt.Errorf("--control-socket: %w", err)
	}
	defer socket.Close()
	watched := watchLedger(d.counts.Ledger(book))
	loop, err := d.newLoop(ctx, watched)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loop.close()) }()
	controller, informer := loop.controller, loop.informer
	if err := d.sayWhyNotListed(informer); err != nil {
		return err
	}
	err = d.counts.Working(metrics.Work{
		Ledger:     watched,
		Controller: both{controller, loop.workflows},
		Pools:      loop.poolControl.Loads,
		Informer:   informer,
		Workflows:  loop.workflowInformer,
		Now:        time.Now,
		LedgerFile: d.o.LedgerFile(),
		Data:       d.o.Data,
		KeepFree:   d.o.KeepFree.Value(),
	})
	if err != nil {
		return err
	}

	// Watching continues until work in flight has ended, so that its last words still reach the objects.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watch, parts errgroup.Group
	watch.Go(func() error { informer.RunWithContext(watching); return nil })
	watch.Go(func() error { loop.workflowInformer.RunWithContext(watching); return nil })
	watch.Go(func() error { loop.pools.Run(watching); return nil })
	watch.Go(func() error { return loop.secrets.Run(watching, loop.SecretChanged, controller.SecretTouched) })
	defer func() { stopWatching(); err = errors.Join(err, watch.Wait()) }()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	part := func(name string, f func() error) {
		parts.Go(func() error {
			defer stop()
			if err := f(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	part("controller", func() error {
		if !cache.WaitForCacheSync(ctx.Done(), loop.pools.HasSynced) {
			return nil
		}
		return controller.Run(ctx)
	})
	part("pools", func() error {
		if !cache.WaitForCacheSync(ctx.Done(), loop.pools.HasSynced, informer.HasSynced) {
			return nil
		}
		return loop.poolControl.Run(ctx)
	})
	part("matching", func() error {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			loop.matching.Run(ctx)
		}
		return nil
	})
	part("credentials", func() error {
		if cache.WaitForCacheSync(
			ctx.Done(), loop.pools.HasSynced, informer.HasSynced, loop.workflowInformer.HasSynced) {
			loop.asked.Prover.Run(ctx)
		}
		return nil
	})
	if loop.kueue != nil {
		part("kueue", func() error { loop.kueue.Run(ctx); return nil })
	}
	part("workflows", func() error { return d.runWorkflows(ctx, loop) })
	part("receiver", func() error {
		receiver := notify.NewReceiver(loop, notify.Options{Answered: d.counts.Callback}, d.log)
		return serve(ctx, notify.NewServer(d.withCredentials(receiver, loop), d.log), listener, d.o.ShutdownTimeout)
	})
	if outputs != nil {
		part("output", func() error { return d.serveOutput(ctx, outputs, loop, watched) })
	}
	part("control", func() error {
		return serve(ctx, control.NewServer(ctx, loop, loop.matching, informer.HasSynced), socket, d.o.ShutdownTimeout)
	})
	part("cross-check", func() error { return d.crosscheck(ctx, informer.HasSynced, loop) })
	part("uploads", func() error { return d.sweepUploads(ctx, loop) })
	if loop.traces != nil {
		part("traces", func() error { loop.traces.Run(ctx); return nil })
	}
	part("history", func() error { d.forget(ctx, watched); return nil })
	part("feeds", func() error { loop.feeds.run(ctx, informer.HasSynced, loop.Hint); return nil })
	part("ledger", func() error { return watched.wait(ctx) })
	part("readiness", func() error { return d.beReady(ctx, informer, watched, loop.LedgerBack) })
	part("apiserver's state", func() error {
		tick := time.NewTicker(lookAtStateEvery)
		defer tick.Stop()
		return watchState(ctx, tick.C, func(ctx context.Context) (string, error) {
			return apiserver.HTCJobs(d.jobs, nil).Version(ctx, d.o.Namespace)
		})
	})
	d.log.Info().Str("receiver", listener.Addr().String()).Str("ledger", d.o.LedgerFile()).Msg("working")
	if !tool.Confined() {
		d.log.Warn().Msg(
			"the kernel has no Landlock: the account of a job might have its output written wherever htcd may write, see SECURITY.md",
		)
	}
	return errors.Join(bounded(ctx, parts.Wait, d.o.ShutdownTimeout), watched.verdict())
}

// listen returns the listener for callbacks. With a certificate it speaks TLS; with one of htcd's own it goes on to
// take plain HTTP.
func (d *daemon) listen() (net.Listener, error) {
	listener, err := net.Listen("tcp", d.o.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	listener = notify.Limit(listener, d.counts.Unanswered)
	switch {
	case d.o.TLSCert != "":
		var config *tls.Config
		if config, err = notify.TLS(d.o.TLSCert, d.o.TLSKey, d.log); err == nil {
			return tls.NewListener(listener, config), nil
		}
	case d.o.ownAuthority():
		var own *notify.Own
		if own, err = d.o.loadOwn(); err == nil {
			return notify.Either(listener, own.TLS()), nil
		}
	default:
		return listener, nil
	}
	_ = listener.Close() // nobody has connected
	return nil, fmt.Errorf("--listen with TLS: %w", err)
}

// bounded waits for the parts to end; once ctx has ended, not longer than the grace time. Work that is then interrupted
// is resumed at the next start.
func bounded(ctx context.Context, wait func() error, grace time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		return nil
	}
}

// openLedger waits for a volume that is absent or cannot be written. A damaged file is put aside.
func (d *daemon) openLedger(ctx context.Context) (*ledger.Ledger, error) {
	for {
		err := os.MkdirAll(d.o.stagingDir(), 0o700)
		if err == nil {
			var book *ledger.Ledger
			book, err = ledger.Open(ctx, d.o.LedgerFile())
			switch {
			case err == nil:
				if err := book.GivesBack(); err != nil {
					d.log.Warn().Err(err).Msg("the ledger's file does not shrink before the next start")
				}
				return book, nil
			case errors.Is(err, ledger.ErrCorrupt):
				if err := d.quarantine(err); err != nil {
					return nil, err
				}
				continue
			case !ledger.IsUnavailable(err) && !errors.Is(err, os.ErrPermission) && !errors.Is(err, os.ErrNotExist):
				return nil, err
			}
		}
		d.health.unready("the ledger cannot be opened: " + err.Error())
		d.log.Error().
			Err(err).
			Str("directory", filepath.Dir(d.o.LedgerFile())).
			Msg("ledger not available, trying again")
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(5 * time.Second):
		}
	}
}

// quarantine renames a damaged file. Its contents are rebuilt from the HTCJobs' statuses and the schedd's tags.
func (d *daemon) quarantine(why error) error {
	aside, err := ledger.Quarantine(d.o.LedgerFile(), time.Now())
	if err != nil {
		return err
	}
	d.log.Error().Err(why).Str("ledger", d.o.LedgerFile()).Str("aside", aside).
		Msg(
			"the ledger file is damaged and was put aside; starting a new one, which is rebuilt from the HTCJobs and the schedd",
		)
	return nil
}

// crosscheck asks the schedds at the start, then on schedule, and in between about jobs in their queues. If a pass is
// still running for a schedd, the next one omits it, so that none waits for another.
func (d *daemon) crosscheck(ctx context.Context, synced func() bool, l *loop) error {
	pass := func(name string, ask func(context.Context) error) {
		defer giveBackPages() // at rest, nothing follows
		began := time.Now()
		if err := ask(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn().Err(err).Msg("the cross-check was interrupted; what it did not reach is unchanged")
			return
		}
		d.log.Debug().Str("pass", name).Dur("took", time.Since(began)).Msg("pass")
	}
	timer := cron.New()
	if _, err := timer.AddJob(
		d.o.ReconcileSchedule,
		cron.FuncJob(func() { pass("crosscheck", l.Crosscheck) }),
	); err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return nil
	}
	var passes sync.WaitGroup
	passes.Go(func() { pass("crosscheck", l.Crosscheck) })
	timer.Start()
	tick := time.NewTicker(d.o.Refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			<-timer.Stop().Done()
			passes.Wait()
			return nil
		case <-tick.C:
			passes.Go(func() { pass("refresh", l.Refresh) })
		}
	}
}
