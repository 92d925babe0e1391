package command

import (
	"errors"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// doctor checks everything that htcd run depends on.
func (s settings) doctor() *cobra.Command {
	var o daemon.Options
	var format string
	var workflows bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that htcd needs, and explain what to do",
		Long: `Check, one after the other, what htcd run needs: Kubernetes and the rights in it, the CRD, the volume, HTCondor's
tools, the account and its ticket or token, the schedd, the route for callbacks, and the route to users' output. A check with a problem
says what to do; checks that depend on it are skipped. Whether HTCWorkflows can run is found out by a job, which runs on the schedd's host for some
seconds and is removed; --workflows=false sends none.

It takes the flags and HTCD_ variables of htcd run. In htcd's pod: kubectl -n htcd exec deploy/htcd -- htcd doctor.
It may run beside a working htcd: it takes no Lease and deletes the files it writes.

Exit codes:
  0  no problem
  1  at least one
  2  a mistake in the command line or the environment; nothing was tried`,
		Args: setting.NoArguments,
	}
	setting.Text(c.Flags(), &format, "output,o", "table", operator.TableJSON, "table or json")
	setting.Bool(c.Flags(), &workflows, "workflows", true, "try, by a job, whether the schedd can run HTCWorkflows")
	return s.with(&o, c, nil, func([]string) error {
		if err := o.Check(); err != nil {
			return setting.Usage{Err: err}
		}
		well, err := daemon.Examine(c.Context(), o, workflows, c.OutOrStdout(), format)
		if err == nil && !well {
			err = errors.New("there are problems")
		}
		return err
	})
}
