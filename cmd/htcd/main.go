// Command htcd runs HTCondor jobs for people who work in Kubernetes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/plugin"
	"htc.cern.ch/htcd/internal/cli/program"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/cli/syncsecret"
	"htc.cern.ch/htcd/internal/daemon/command"
)

// Exit codes of htcd: 0 done, 1 failed, 2 a mistake in the command line.
const (
	exitFailure = 1
	exitUsage   = 2
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() { os.Exit(run(filepath.Base(os.Args[0]), os.Args[1:], os.Environ())) }

// pluginNames are the names by which kubectl finds the users' commands; htcd then offers only those.
var pluginNames = []string{"kubectl-htcjob", "kubectl_htcjob"}

// run is the whole program: arguments and environment in, an exit code out. Nothing below it reads the environment,
// except client-go, which looks for users' kubeconfigs, and convert, as condor_submit does.
func run(name string, args, environ []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	root := rootCommand(name, environ)
	root.SetArgs(args)
	if c, _, err := root.Find(args); err == nil && c.GroupID != operators {
		context.AfterFunc(ctx, stop) // a second interrupt ends what reads a file, or waits for one, meanwhile
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[plugin.Exit](err); ok {
		return e.Code
	}
	fmt.Fprintln(os.Stderr, name+":", plugin.Plain(err.Error()))
	if errors.As(err, new(setting.Usage)) {
		return exitUsage
	}
	return exitFailure
}

// The groups of commands.
const (
	users     = "users"
	operators = "operators"
)

// rootCommand has all commands that there are under a name of the program.
func rootCommand(name string, environ []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "htcd",
		Short:         "htcd runs HTCondor jobs for people who work in Kubernetes",
		Args:          setting.NoArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("htcd {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(
		func(_ *cobra.Command, err error) error { return setting.Usage{Err: setting.Explain(err, "")} },
	)
	if slices.Contains(pluginNames, name) {
		root.Use, root.Short = "kubectl-htcjob", "HTCondor jobs: submit them and read their output"
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl htcjob"}
		root.AddCommand(plugin.Commands()...)
	} else {
		root.AddGroup(
			&cobra.Group{ID: users, Title: "For users, who need a kubeconfig:"},
			&cobra.Group{ID: operators, Title: "For administrators:"},
		)
		root.AddCommand(grouped(users, append(plugin.Commands(), syncsecret.Command())...)...)
		root.AddCommand(grouped(operators, command.All(flags, environ)...)...)
		root.AddCommand(grouped(operators, program.Commands()...)...)
	}
	root.AddCommand(versionCommand(), settingsCommand())
	return root
}

// grouped assigns commands to a group of the root's help.
func grouped(id string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.GroupID = id
	}
	return commands
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  setting.NoArguments,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "htcd", version) },
	}
}
