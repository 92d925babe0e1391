package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
	"htc.cern.ch/htcd/internal/serve/control"
)

// slots shows what is free in the pool.
func (s settings) slots() *cobra.Command {
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
	setting.Text(c.Flags(), &format, "output,o", "table", operator.TableJSON, "table or json")
	return s.with(&o, c, []string{"ticket-dir", "control-socket"}, func([]string) error {
		kinds, err := control.Slots(c.Context(), o.Socket())
		switch {
		case errors.Is(err, control.ErrNoDaemon):
			return fmt.Errorf("%w: run this where the active htcd runs", err)
		case err != nil:
			return err
		case format == "json":
			return json.NewEncoder(c.OutOrStdout()).Encode(kinds)
		}
		return operator.PrintSlots(c.OutOrStdout(), kinds)
	})
}
