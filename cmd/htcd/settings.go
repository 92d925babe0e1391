package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/setting"
)

// settingGroups are the headings of docs/settings.md, each above the flag that it begins with, in the order of Options.flags.
var settingGroups = []struct{ first, title string }{
	{"kubeconfig", "Kubernetes"},
	{"data", "What must outlive htcd"},
	{"listen", "Where htcd listens"},
	{"image-registry", "What is run, and how much of it"},
	{"kinit-secret", "Accounts"},
	{"condor-config", "HTCondor"},
	{"shutdown-timeout", "The process"},
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
	var o Options
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.SortFlags = false
	o.flags(f)
	var b strings.Builder
	b.WriteString(`<!-- Made by "make generate" from cmd/htcd/options.go: change it there. -->
# Every setting

These are the flags of ` + "`htcd run`, which `htcd reconcile`, `htcd doctor` and `htcd render`" + ` take as well. A flag overrides the variable. An
empty variable is none; a value that is not allowed is refused at the start. Which to set, and why, is in [configure.md](configure.md).
`)
	groups := settingGroups
	f.VisitAll(func(flag *pflag.Flag) {
		if len(groups) > 0 && groups[0].first == flag.Name {
			b.WriteString("\n## " + groups[0].title + "\n\n| flag | variable | default | meaning | allowed |\n|---|---|---|---|---|\n")
			groups = groups[1:]
		}
		value, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if value != "" {
			name += "=" + value
		}
		def := flag.DefValue
		if def = strings.Trim(def, "[]"); def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", name, environmentName(flag.Name), def, strings.ReplaceAll(usage, "|", `\|`), setting.Allowed(flag))
	})
	return b.String()
}
