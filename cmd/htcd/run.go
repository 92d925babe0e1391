package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// runCommand is the operator itself.
func runCommand(environ []string) *cobra.Command {
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
	flags(&o, c.Flags())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := complete(c.Flags(), environ); err != nil {
			return setting.Usage{Err: fmt.Errorf("run: %w", err)}
		}
		if err := o.Check(); err != nil {
			return setting.Usage{Err: fmt.Errorf("run: %w", err)}
		}
		log, err := logger.New(os.Stderr, o.LogLevel, o.LogFormat)
		if err != nil {
			return setting.Usage{Err: fmt.Errorf("run: %w", err)}
		}
		return daemon.Run(cmd.Context(), o, log)
	}
	return c
}
