package plugin

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/setting"
)

func statusCommand() *cobra.Command {
	var at Connection
	var format string
	var verbose bool
	c := &cobra.Command{
		Use:   "status NAME",
		Short: "Print where an HTCJob or HTCWorkflow stands, in one word",
		Long: `Print where an HTCJob or HTCWorkflow stands, in one word, and end with an exit code of its own for each. Neither will change:

  succeeded  0  every job has succeeded, or the HTCWorkflow has
  failed     3  it has ended otherwise: a job has failed, it was refused, or removed by somebody
  pending    4  no job runs: it is still to be sent, waits for a slot or is on hold
  running    5  at least one job runs
  suspended  6  spec.suspend, or htcd cancel, keeps its jobs out of HTCondor

Other exit codes: 1 it does not exist or cannot be read, 2 a mistake in the command line.

With -o json it is an object with state, exitCode, message and more; with -o table or wide a line of htcd list. With -v
what has happened in the present attempt follows, each line with the time since the line above: where the time went.
` + bothKinds,
		Args:              arguments(1, "the name of an HTCJob or HTCWorkflow"),
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	setting.Text(
		c.Flags(),
		&format,
		"output,o",
		"word",
		setting.OneOf(formats...),
		"`format`: word, table, wide, name or json",
	)
	setting.Bool(
		c.Flags(),
		&verbose,
		"verbose,v",
		false,
		"say when it was created, sent, started and ended; not with -o json",
	)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := named(args[0], kinds...); err != nil {
			return err
		}
		if verbose && format == "json" {
			return setting.Usage{
				Err: errors.New("--verbose: -o json has all times, as created, submitted, started and completed"),
			}
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		o, err := where.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := show(cmd.OutOrStdout(), format, []*object{o}); err != nil {
			return err
		}
		if verbose {
			if err := showMoments(cmd.OutOrStdout(), o, time.Now()); err != nil {
				return err
			}
		}
		if code := stateCodes[stateOf(o)]; code != 0 {
			return Exit{code}
		}
		return nil
	}
	return c
}
