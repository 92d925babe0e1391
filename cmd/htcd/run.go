package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// runCommand is the operator itself.
func runCommand(environ []string) *cobra.Command {
	var o Options
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the operator",
		Long: `Run the operator: watch HTCJobs, submit them to HTCondor, keep their status correct.

Every flag can also be set in the environment, as HTCD_ and its name in capitals with _ for -
(--callback-url is HTCD_CALLBACK_URL). A flag overrides the environment.

SIGTERM and SIGINT stop it: work in flight is finished, at most for --shutdown-timeout, and the exit code is 0.`,
		Args: setting.NoArguments,
	}
	o.flags(c.Flags())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.complete(c.Flags(), environ); err != nil {
			return setting.Usage{Err: fmt.Errorf("run: %w", err)}
		}
		if err := o.check(); err != nil {
			return setting.Usage{Err: fmt.Errorf("run: %w", err)}
		}
		log, err := logger.New(os.Stderr, o.LogLevel, o.LogFormat)
		if err != nil {
			return setting.Usage{Err: fmt.Errorf("run: %w", err)}
		}
		d, err := newDaemon(o, log)
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
		err = d.run(cmd.Context())
		if needsReexec(err) && cmd.Context().Err() == nil {
			log.Error().Err(err).Msg("this process must not continue; restarting it")
			err = errors.Join(err, reexec())
		}
		return err
	}
	return c
}

// lookup finds a variable in an environment list, as os.Getenv does.
func lookup(environ []string) func(string) string {
	return func(name string) string {
		for _, entry := range environ {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				return value
			}
		}
		return ""
	}
}
