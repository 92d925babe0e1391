package command

import (
	"os"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// run is the operator itself.
func (s settings) run() *cobra.Command {
	var o daemon.Options
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the operator",
		Long: `Run the operator: watch HTCJobs, submit them to HTCondor, keep their status correct.

Every flag can also be set in the environment, as HTCD_ and its name in capitals with _ for -
(--callback-url is HTCD_CALLBACK_URL). A flag overrides the environment.

SIGTERM and SIGINT stop it: work in flight is finished, at most for --shutdown-timeout, and the exit code is 0.`,
		Args: setting.NoArguments,
	}
	return s.with(&o, c, nil, func([]string) error {
		if err := o.Check(); err != nil {
			return setting.Usage{Err: err}
		}
		log, err := logger.New(os.Stderr, o.LogLevel, o.LogFormat)
		if err != nil {
			return setting.Usage{Err: err}
		}
		return daemon.Run(c.Context(), o, log)
	})
}
