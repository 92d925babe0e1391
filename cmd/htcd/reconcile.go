package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/ledger"
)

// reconcileCommand runs one cross-check now and shows its result.
func reconcileCommand(environ []string) *cobra.Command {
	var o Options
	var once bool
	var scope job.ReconcileOptions
	var format string
	c := &cobra.Command{
		Use:   "reconcile --once",
		Short: "Compare ledger and HTCJobs with HTCondor now, repair what differs, and show it",
		Long: `Compare everything in the ledger, nodes of HTCWorkflows included, with HTCondor's queue and history, and the status of the
HTCJobs with the ledger; repair and print the differences. It submits nothing.

When many HTCJobs, or HTCWorkflows, vanish at once without having been deleted (an older state of etcd restored), their jobs and output
are kept, and shown as Orphan. With --remove-orphans they are removed.

The running htcd does the work if it answers on --control-socket (in its pod: kubectl exec deploy/htcd -- htcd reconcile
--once). Without one this process takes the Lease and does the work itself, for which it needs what htcd run needs: the
same flags, or the same HTCD_ variables. With --dry-run nothing is written and no Lease is taken.

Exit codes:
  0  the pass is complete: differences, if any, were repaired (with --dry-run: shown)
  1  HTCondor, Kubernetes or the ledger did not answer; what is printed was done before
  2  a mistake in the command line or the environment; nothing was done`,
		Args: setting.NoArguments,
	}
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	o.flags(settings)
	settings.Lookup("namespace").Usage = "only this `namespace`; empty: all"
	c.Flags().AddFlagSet(settings)
	setting.Bool(c.Flags(), &once, "once", false, "one pass, now (required)")
	setting.Bool(c.Flags(), &scope.DryRun, "dry-run", false, "show differences and change nothing")
	setting.Bool(c.Flags(), &scope.RemoveOrphans, "remove-orphans", false, "remove the jobs and output of HTCJobs and HTCWorkflows that vanished, many at once, without having been deleted")
	setting.Text(c.Flags(), &scope.Name, "name", "", setting.Object, "only HTCJobs and HTCWorkflows of this `name`")
	setting.Text(c.Flags(), &format, "output,o", "table", tableJSON, "table or json")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		wrong := func(err error) error { return setting.Usage{Err: fmt.Errorf("reconcile: %w", err)} }
		quiet := !settings.Changed("log-level")
		switch err := o.complete(settings, environ); {
		case err != nil:
			return wrong(err)
		case !once:
			return wrong(errors.New("give --once for one pass now; htcd run makes them on schedule (--reconcile-schedule)"))
		}
		if err := o.checkParts(); err != nil {
			return wrong(err)
		}
		if quiet { // the environment is that of a daemon, whose log is not for a terminal
			o.LogLevel, o.LogFormat = "warn", "text"
		}
		scope.Namespace = o.Namespace
		answer, err := reconcile(cmd.Context(), o, scope)
		if err != nil {
			answer.Error = err.Error()
		}
		if answer.Differences == nil {
			answer.Differences = []crosscheck.Difference{}
		}
		if err := printOutcome(cmd.OutOrStdout(), format, answer, scope.DryRun); err != nil {
			return fmt.Errorf("reconcile: %w", err)
		}
		if answer.Error != "" {
			return fmt.Errorf("reconcile: %s", answer.Error)
		}
		return nil
	}
	return c
}

// reconcile lets the running htcd do the pass, or makes it itself if there is none.
func reconcile(ctx context.Context, o Options, scope job.ReconcileOptions) (outcome, error) {
	answer, err := askDaemon(ctx, o.controlSocket(), scope)
	if !errors.Is(err, errNoDaemon) {
		return answer, err
	}
	log, err := logger.New(os.Stderr, o.LogLevel, o.LogFormat)
	if err != nil {
		return answer, setting.Usage{Err: err}
	}
	if _, err := os.Stat(o.ledgerFile()); err != nil {
		return answer, fmt.Errorf("no htcd answers on %s, and there is no ledger here to work on: %w", o.controlSocket(), err)
	}
	d, err := newDaemon(o, log)
	if err != nil {
		return answer, err
	}
	if err := d.reachable(ctx); err != nil {
		return answer, err
	}
	if scope.DryRun {
		book, err := ledger.OpenReader(ctx, o.ledgerFile())
		if err != nil {
			return answer, err
		}
		answer.Report, err = d.reconcile(ctx, book, scope)
		err = errors.Join(err, book.Close())
		return answer, err
	}
	pass := func(ctx context.Context) (err error) {
		book, err := ledger.Open(ctx, o.ledgerFile())
		if err != nil {
			return err
		}
		answer.Report, err = d.reconcile(ctx, book, scope)
		return errors.Join(err, book.Close())
	}
	if o.LeaderElect {
		if err = d.leadOrLeave(ctx, pass); errors.Is(err, errLeaseLost) {
			return outcome{}, err // the pass may still use it until this process ends
		}
	} else {
		err = pass(ctx)
	}
	return answer, err
}

// reconcile makes the pass over an open ledger that nobody else writes.
func (d *daemon) reconcile(ctx context.Context, book job.Ledger, scope job.ReconcileOptions) (report job.Report, err error) {
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
	cache.WaitForCacheSync(bound.Done(), loop.secrets.HasSynced, loop.pools.HasSynced) // without it, the request for a ticket reports the error
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
