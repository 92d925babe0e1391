// Package command has the commands of administrators that take the settings of htcd run, and its feed.
package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// settings are where the options of the commands come from.
type settings struct {
	flags   func(*daemon.Options, *pflag.FlagSet) // gives each option of htcd run its flag
	environ []string
}

// All returns the commands, given what gives each option of htcd run its flag, and the environment.
func All(flags func(*daemon.Options, *pflag.FlagSet), environ []string) []*cobra.Command {
	s := settings{flags, environ}
	return []*cobra.Command{
		s.run(), s.reconcile(), s.doctor(), s.slots(), s.render(), s.backup(), s.restore(), s.feed(),
	}
}

// with gives a command the flags of options of htcd run, all of them or those named, and its work, which begins once
// the options are complete. The environment may set the others, too.
func (s settings) with(
	o *daemon.Options,
	c *cobra.Command,
	names []string,
	work func(args []string) error,
) *cobra.Command {
	f := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	s.flags(o, f)
	for _, name := range names {
		c.Flags().AddFlag(f.Lookup(name))
	}
	if names == nil {
		c.Flags().AddFlagSet(f) // without those that are there already
	}
	return s.begin(c, f, work)
}

// begin has a command complete its flags from the environment, and then work. A site may have one file of variables for
// htcd run and htcd feed: each passes over what only the other has.
func (s settings) begin(c *cobra.Command, f *pflag.FlagSet, work func(args []string) error) *cobra.Command {
	c.RunE = func(_ *cobra.Command, args []string) error {
		ofRun, ofFeed := pflag.NewFlagSet("run", pflag.ContinueOnError), pflag.NewFlagSet("feed", pflag.ContinueOnError)
		s.flags(&daemon.Options{}, ofRun)
		(&feedOptions{}).flags(ofFeed)
		err := setting.Complete(f, s.environ, ofRun, ofFeed)
		if err != nil {
			err = setting.Usage{Err: err}
		} else {
			err = work(args)
		}
		if wrong, is := errors.AsType[setting.Usage](err); is {
			return setting.Usage{Err: fmt.Errorf("%s: %w", c.Name(), wrong.Err)}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name(), err)
		}
		return nil
	}
	return c
}
