// Command htcd runs HTCondor jobs for people who live in Kubernetes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of htcd: 0 done, 1 it could not do what was asked, 2 it was asked wrongly.
const (
	exitFailure = 1
	exitUsage   = 2
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Environ())) }

// run is the whole program: arguments and environment in, an exit code out. Nothing below it reads the environment.
func run(args, environ []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	root := &cobra.Command{
		Use:           "htcd",
		Short:         "htcd runs HTCondor jobs for people who live in Kubernetes",
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(environ), reconcileCommand(environ), sendCommand(), versionCommand())
	root.SetArgs(args)

	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "htcd:", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		return exitUsage
	}
	return exitFailure
}

// usageError is a mistake in how htcd was called; trying again unchanged cannot help.
type usageError struct{ error }

// noArguments refuses what is no command and no flag.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s: there is no %q; %s --help lists what there is", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "htcd", version) },
	}
}
