package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/setting"
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, flags and HTCJobs in a shell",
		Long: `Print a script that completes commands, flags and the names of HTCJobs in a shell:

  source <(htcd completion bash)                              # in ~/.bashrc; needs the package bash-completion
  source <(htcd completion zsh)                               # in ~/.zshrc, after compinit
  htcd completion fish >~/.config/fish/completions/htcd.fish

kubectl completes kubectl htcjob by a program kubectl_complete-htcjob in the PATH:

  #!/bin/sh
  exec kubectl-htcjob __complete "$@"`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      arguments(1, "bash, zsh or fish"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root, out := cmd.Root(), cmd.OutOrStdout(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return setting.Usage{Err: errors.New("completion: want bash, zsh or fish")}
		},
	}
}

// completes is how long a shell may be kept waiting for names.
const completes = 3 * time.Second

// completeNames offers the HTCJobs of the namespace that are not named yet.
func (c *Connection) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	where, err := c.open(io.Discard)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completes)
	defer cancel()
	jobs, err := where.selected(ctx, selection{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	given := map[string]bool{}
	for _, name := range args {
		given[name] = true
	}
	var names []string
	for i := range jobs {
		if !given[jobs[i].Name] {
			names = append(names, fmt.Sprintf("%s\t%s", jobs[i].Name, stateOf(&jobs[i])))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
