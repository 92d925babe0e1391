package setting

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Usage is a mistake in the command line or the environment; trying again unchanged cannot help.
type Usage struct{ Err error }

func (u Usage) Error() string { return u.Err.Error() }

// Unwrap returns the mistake itself.
func (u Usage) Unwrap() error { return u.Err }

// NoArguments refuses anything that is neither a command nor a flag.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage{
			fmt.Errorf(
				"%s: there is no %q; %s --help lists the commands",
				cmd.CommandPath(),
				args[0],
				cmd.CommandPath(),
			),
		}
	}
	return nil
}
