package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/matching"
)

// slotLister lists the slots of the usual pool.
type slotLister interface {
	Slots(ctx context.Context) (matching.Slots, error)
}

// slotsCommand shows what is free in the pool.
func slotsCommand(environ []string) *cobra.Command {
	var o Options
	var format string
	c := &cobra.Command{
		Use:   "slots",
		Short: "Show free and busy slots of the pool, by size",
		Long: `Show the slots of the usual pool (--pool), those of one size in a line: how many there are and on how many machines, how many of them
are idle, what is free in all of them together, and the largest job that one of them could take now.

The running htcd asks the collector (in its pod: kubectl exec deploy/htcd -- htcd slots).

Exit codes:
  0  the slots are printed
  1  no htcd is running here, or the collector did not answer
  2  a mistake in the command line or the environment`,
		Args: setting.NoArguments,
	}
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	o.flags(settings)
	for _, name := range []string{"ticket-dir", "control-socket"} {
		c.Flags().AddFlag(settings.Lookup(name))
	}
	setting.Text(c.Flags(), &format, "output,o", "table", tableJSON, "table or json")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.complete(settings, environ); err != nil {
			return setting.Usage{Err: fmt.Errorf("slots: %w", err)}
		}
		kinds := []matching.Kind{}
		err := askControl(cmd.Context(), o.controlSocket(), http.MethodGet, "/slots", nil, &kinds)
		if errors.Is(err, errNoDaemon) {
			err = fmt.Errorf("%w: run this where the active htcd runs", err)
		}
		if err == nil && format == "json" {
			err = json.NewEncoder(cmd.OutOrStdout()).Encode(kinds)
		} else if err == nil {
			err = printSlots(cmd.OutOrStdout(), kinds)
		}
		if err != nil {
			return fmt.Errorf("slots: %w", err)
		}
		return nil
	}
	return c
}

func printSlots(w io.Writer, kinds []matching.Kind) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "SIZE\tMACHINES\tSLOTS\tIDLE\tFREE\tLARGEST FREE")
	for _, k := range kinds {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%s\n", matching.Describe(k.Size), k.Machines, k.Slots, k.Idle, free(k.Free), free(k.Largest))
	}
	return table.Flush()
}

// free describes what a job could get. Disks of several machines are not added up.
func free(s schedd.Size) string {
	if s.CPUs == 0 {
		return "-"
	}
	s.Disk = 0
	return matching.Describe(s)
}
