// Command kubectl-htcjob is the users' part of htcd alone, which also runs where htcd does not: `kubectl htcjob` on a
// Mac.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/plugin"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() { os.Exit(run(os.Args[1:])) }

// run returns the same exit codes as htcd: 0 done, 1 failed, 2 a mistake in the command line, or what the command says.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends what reads a file, or waits for one, meanwhile
	root := &cobra.Command{
		Use:           "kubectl-htcjob",
		Short:         "HTCondor jobs: submit them and read their output",
		Version:       version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl htcjob"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return setting.Usage{Err: err} })
	root.AddCommand(plugin.Commands()...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[plugin.Exit](err); ok {
		return e.Code
	}
	fmt.Fprintln(os.Stderr, "kubectl-htcjob:", plugin.Plain(err.Error()))
	if errors.As(err, new(setting.Usage)) {
		return 2
	}
	return 1
}
