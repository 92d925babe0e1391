package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
	"htc.cern.ch/htcd/internal/serve/control"
)

// slotsCommand shows what is free in the pool.
func slotsCommand(environ []string) *cobra.Command {
	var o daemon.Options
	var format string
	c := &cobra.Command{
		Use:   "slots",
		Short: "Show free and busy slots of the pool, by size",
		Long: `Show the slots of the usual pool (--collector), those of one size in a line: how many there are and on how many machines, how many of them
are idle, what is free in all of them together, and the largest job that one of them could take now.

The running htcd asks the collector (in its pod: kubectl exec deploy/htcd -- htcd slots).

Exit codes:
  0  the slots are printed
  1  no htcd is running here, or the collector did not answer
  2  a mistake in the command line or the environment`,
		Args: setting.NoArguments,
	}
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	flags(&o, settings)
	for _, name := range []string{"ticket-dir", "control-socket"} {
		c.Flags().AddFlag(settings.Lookup(name))
	}
	setting.Text(c.Flags(), &format, "output,o", "table", operator.TableJSON, "table or json")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := complete(settings, environ); err != nil {
			return setting.Usage{Err: fmt.Errorf("slots: %w", err)}
		}
		kinds, err := control.Slots(cmd.Context(), o.Socket())
		if errors.Is(err, control.ErrNoDaemon) {
			err = fmt.Errorf("%w: run this where the active htcd runs", err)
		}
		if err == nil && format == "json" {
			err = json.NewEncoder(cmd.OutOrStdout()).Encode(kinds)
		} else if err == nil {
			err = operator.PrintSlots(cmd.OutOrStdout(), kinds)
		}
		if err != nil {
			return fmt.Errorf("slots: %w", err)
		}
		return nil
	}
	return c
}
