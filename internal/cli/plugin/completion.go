package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/setting"
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, flags and names in a shell",
		Long: `Print a script that completes commands, flags and the names of HTCJobs and HTCWorkflows in a shell:

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

// complete offers the objects of these kinds in the namespace that are not named yet.
func (c *Connection) complete(among ...*kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		where, err := c.open(io.Discard)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completes)
		defer cancel()
		all, err := where.selected(ctx, selection{}, among...)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offered(all, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// offered are the words that complete one: names, with the kind where both have the name or it was begun with one.
func offered(all []*object, given []string, begun string) (words []string) {
	named := map[string]int{}
	for _, o := range all {
		named[o.Name]++
	}
	for _, o := range all {
		word := o.Name
		if prefix, _, both := strings.Cut(begun, "/"); both && slices.Contains(o.prefixes, prefix) {
			word = prefix + "/" + o.Name
		} else if both || named[o.Name] > 1 {
			word = o.short(o.Name)
		}
		if !slices.Contains(given, word) {
			words = append(words, fmt.Sprintf("%s\t%s", word, stateOf(o)))
		}
	}
	return words
}
