package command

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/daemon"
	"htc.cern.ch/htcd/internal/kube/job"
)

// reconcile runs one cross-check now and shows its result.
func (s settings) reconcile() *cobra.Command {
	var o daemon.Options
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
  1  HTCondor, Kubernetes or the ledger did not answer, of some or all; what is printed was done all the same
  2  a mistake in the command line or the environment; nothing was done`,
		Args: setting.NoArguments,
	}
	setting.Bool(c.Flags(), &once, "once", false, "one pass, now (required)")
	setting.Bool(c.Flags(), &scope.DryRun, "dry-run", false, "show differences and change nothing")
	setting.Bool(c.Flags(), &scope.RemoveOrphans, "remove-orphans", false,
		"remove the jobs and output of HTCJobs and HTCWorkflows that vanished, many at once, without having been deleted")
	setting.Text(c.Flags(), &scope.Name, "name", "", setting.Object, "only HTCJobs and HTCWorkflows of this `name`")
	setting.Text(c.Flags(), &format, "output,o", "table", operator.TableJSON, "table or json")
	quiet := false
	c.PreRun = func(*cobra.Command, []string) { quiet = !c.Flags().Changed("log-level") }
	s.with(&o, c, nil, func([]string) error {
		if !once {
			return setting.Usage{
				Err: errors.New("give --once for one pass now; htcd run makes them on schedule (--reconcile-schedule)"),
			}
		}
		if err := o.CheckParts(); err != nil {
			return setting.Usage{Err: err}
		}
		if quiet { // the environment is that of a daemon, whose log is not for a terminal
			o.LogLevel, o.LogFormat = "warn", "text"
		}
		scope.Namespace = o.Namespace
		log, err := logger.New(os.Stderr, o.LogLevel, o.LogFormat)
		if err != nil {
			return setting.Usage{Err: err}
		}
		answer, err := daemon.Reconcile(c.Context(), o, scope, log)
		if err != nil {
			answer.Error = err.Error()
		}
		if answer.Differences == nil {
			answer.Differences = []crosscheck.Difference{}
		}
		if err := operator.PrintOutcome(c.OutOrStdout(), format, answer, scope.DryRun); err != nil {
			return err
		}
		if answer.Error != "" {
			return errors.New(answer.Error)
		}
		return nil
	})
	c.Flags().Lookup("namespace").Usage = "only this `namespace`; empty: all"
	return c
}
