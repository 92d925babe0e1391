package daemon

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/workflow"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/serve/aggregate"
	"htc.cern.ch/htcd/internal/serve/follow"
	"htc.cern.ch/htcd/internal/target/backend"
)

// liveReaders is how many readers may follow running jobs at once: each is a condor_tail, which asks every 2 s.
const liveReaders = 32

// serveOutput lets users read their jobs' output through the apiserver, until ctx ends.
func (d *daemon) serveOutput(ctx context.Context, listener net.Listener, l *loop, book reconciler.Ledger) error {
	certificate, err := aggregate.NewCertificate(d.o.OwnSpace)
	if err != nil {
		return err
	}
	log := d.log.With().Str("component", "output").Logger()
	reader := follow.New(follow.Options{
		HTCJobs:   apiserver.LookupHTCJobs(d.jobs, l.informer.GetStore(), d.o.Namespace),
		Workflows: apiserver.LookupHTCWorkflows(d.jobs, l.workflowInformer.GetStore(), d.o.Namespace),
		Attempt:   workflow.Attempt,
		Ledger:    book,
		Schedd:    l.condor,
		Identity: func(ctx context.Context, run ledger.Run) (schedd.Identity, error) {
			return l.credentials.Identity(ctx, backend.TargetOf(run))
		},
		Store:    d.o.store(),
		Nodes:    d.o.nodeStore(),
		Dir:      d.o.followDir(),
		KeepFree: d.o.KeepFree.Value(),
		Places:   liveReaders,
		Wait:     d.o.CommandTimeout,
		Pause:    time.Second,
		Fresh:    3 * time.Second,
	})
	server := aggregate.Server{
		Certificate: certificate,
		FrontProxy:  &aggregate.FrontProxy{},
		Log:         log,
		Source:      reader,
		Shells:      d.shells(l, book, reader),
		Uploads:     l.uploads,
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return server.FrontProxy.Run(ctx, d.core) })
	parts.Go(func() error { aggregate.Register(ctx, d.core.CoreV1().RESTClient(), certificate, log); return nil })
	parts.Go(func() error { return server.Serve(ctx, listener) })
	return parts.Wait()
}

func (o *Options) followDir() string { return filepath.Join(o.Data, "following") }

// listenOutput returns the listener for the apiserver; nil if output is not served.
func (d *daemon) listenOutput() (net.Listener, error) {
	if d.o.OutputListen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", d.o.OutputListen)
	if err != nil {
		return nil, fmt.Errorf("--output-listen: %w", err)
	}
	return listener, nil
}
