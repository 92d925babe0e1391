package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/serve/control"
)

// Reconcile lets the running htcd do the pass, or makes it itself if there is none.
func Reconcile(
	ctx context.Context,
	o Options,
	scope job.ReconcileOptions,
	log zerolog.Logger,
) (control.Outcome, error) {
	answer, err := control.Reconcile(ctx, o.Socket(), scope)
	if !errors.Is(err, control.ErrNoDaemon) {
		return answer, err
	}
	if _, err := os.Stat(o.LedgerFile()); err != nil {
		return answer, fmt.Errorf("no htcd answers on %s, and there is no ledger here to work on: %w", o.Socket(), err)
	}
	d, err := newDaemon(o, log)
	if err != nil {
		return answer, err
	}
	if err := d.reachable(ctx); err != nil {
		return answer, err
	}
	if scope.DryRun {
		book, err := ledger.OpenReader(ctx, o.LedgerFile())
		if err != nil {
			return answer, err
		}
		answer.Report, err = d.reconcile(ctx, book, scope)
		err = errors.Join(err, book.Close())
		return answer, err
	}
	pass := func(ctx context.Context) (err error) {
		book, err := ledger.Open(ctx, o.LedgerFile())
		if err != nil {
			return err
		}
		answer.Report, err = d.reconcile(ctx, book, scope)
		return errors.Join(err, book.Close())
	}
	if o.LeaderElect {
		if err = d.leadOrLeave(ctx, pass); errors.Is(err, errLeaseLost) {
			return control.Outcome{}, err // the pass may still use it until this process ends
		}
	} else {
		err = pass(ctx)
	}
	return answer, err
}

// reconcile makes the pass over an open ledger that nobody else writes.
func (d *daemon) reconcile(
	ctx context.Context,
	book reconciler.Ledger,
	scope job.ReconcileOptions,
) (report job.Report, err error) {
	loop, err := d.newLoop(ctx, book)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, loop.close()) }()
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	nobody := func(string) {}
	go func() { watched <- loop.secrets.Run(watching, nobody, nobody) }()
	go loop.pools.Run(watching)
	defer func() { stop(); err = errors.Join(err, <-watched) }()

	bound, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cache.WaitForCacheSync(
		bound.Done(),
		loop.secrets.HasSynced,
		loop.pools.HasSynced,
	) // without it, the request for a ticket reports the error
	return loop.Reconcile(ctx, scope)
}

// answerTime is how long the apiserver may take for a small answer.
const answerTime = 15 * time.Second

// reachable finds out at once what client-go would otherwise retry without end.
func (d *daemon) reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := d.jobs.HTCJobs(d.o.Namespace).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return fmt.Errorf("the apiserver did not answer: %w", err)
	}
	return nil
}
