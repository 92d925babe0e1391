package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/plugin"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/schedd/multinode"
)

// multinodeCommand is run in the containers of a job of several nodes.
func multinodeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:    "multinode",
		Short:  "Run the script of a job of several nodes (run by the job itself)",
		Hidden: true,
		Args:   setting.NoArguments,
	}
	c.AddCommand(
		inContainer("run DIR COMMAND...", "Run a command on this node",
			func(ctx context.Context, dir string, words []string, _, _ io.Writer) int {
				return multinode.Run(ctx, dir, words)
			}),
		inContainer("fail DIR CODE", "Tell the first node that there is no script on this one",
			func(ctx context.Context, dir string, words []string, _, errout io.Writer) int {
				code, err := strconv.Atoi(words[0])
				if err == nil {
					err = multinode.Fail(ctx, dir, code)
				}
				if err != nil {
					fmt.Fprintln(errout, "htcd:", err)
					return 1
				}
				return 0
			}),
		inContainer("start DIR HOST COMMAND...", "Run a command on another node, for mpirun", multinode.Start),
	)
	return c
}

func inContainer(
	use, short string,
	run func(ctx context.Context, dir string, words []string, out, errout io.Writer) int,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return setting.Usage{Err: errors.New("expected " + use)}
			}
			if code := run(cmd.Context(), args[0], args[1:], cmd.OutOrStdout(), cmd.ErrOrStderr()); code != 0 {
				return plugin.Exit{Code: code}
			}
			return nil
		},
	}
}
