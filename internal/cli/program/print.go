package program

import (
	"time"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/plugin"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/kube/logspod"
)

// printCommand is what the Pod of spec.logsPod runs.
func printCommand() *cobra.Command {
	code := 0
	c := &cobra.Command{
		Use:    "print DIR",
		Short:  "Print the output of jobs (run by the Pod that spec.logsPod leaves)",
		Hidden: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return setting.Usage{Err: err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := logspod.Print(args[0], cmd.OutOrStdout(), cmd.ErrOrStderr(), 10*time.Millisecond); err != nil {
				return err
			}
			if code != 0 {
				return plugin.Exit{Code: code}
			}
			return nil
		},
	}
	setting.Int(c.Flags(), &code, "exit-code", 0, 0, 255, "end with this `CODE`, which stands for the jobs' result")
	return c
}
