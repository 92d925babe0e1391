package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// settingGroups are the headings of docs/settings.md, each above the flag that it begins with, in the order of flags.
var settingGroups = []setting.Group{
	{First: "kubeconfig", Title: "Kubernetes"},
	{First: "data", Title: "What must outlive htcd"},
	{First: "listen", Title: "Where htcd listens"},
	{First: "image-registry", Title: "What is run, and how much of it"},
	{First: "kinit-secret", Title: "Accounts"},
	{First: "condor-config", Title: "HTCondor"},
	{First: "shutdown-timeout", Title: "The process"},
}

// settingsCommand writes docs/settings.md (make generate).
func settingsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "settings", Short: "Print every setting as Markdown", Hidden: true, Args: setting.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), settingsText())
			return err
		},
	}
}

func settingsText() string {
	var o daemon.Options
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.SortFlags = false
	flags(&o, f)
	var b strings.Builder
	b.WriteString(`<!-- Made by "make generate" from cmd/htcd/flags.go: change it there. -->
# Every setting

These are the flags of ` + "`htcd run`, which `htcd reconcile`, `htcd doctor` and `htcd render`" + ` take as well. A flag overrides the variable. An
empty variable is none; a value that is not allowed is refused at the start. Which to set, and why, is in [configure.md](configure.md).
`)
	setting.Tables(&b, f, settingGroups)
	return b.String()
}
