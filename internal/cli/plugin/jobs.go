package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/cli/setting"
)

func listCommand() *cobra.Command {
	var at Connection
	var only selection
	var format string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the HTCJobs and HTCWorkflows of a namespace",
		Long: `List the HTCJobs and HTCWorkflows of a namespace, the oldest first. An HTCWorkflow is called wf/NAME, and its nodes are counted. STATE
is the word of htcd status. With -o json each is an object on a line of its own. Nothing found is no error.

Exit codes: 0 done, 1 they cannot be read, 2 a mistake in the command line.`,
		Args: arguments(0, "no argument"),
	}
	at.Flags(c.Flags())
	only.flags(c.Flags())
	setting.Bool(c.Flags(), &only.active, "active", false, "only those that have not ended")
	setting.Text(
		c.Flags(),
		&format,
		"output,o",
		"table",
		setting.OneOf(formats...),
		"`format`: table, wide, name, json or word",
	)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := only.check(); err != nil {
			return err
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		all, err := where.selected(cmd.Context(), only, kinds...)
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), format, all)
	}
	return c
}

// exitTimeout is timeout(1)'s.
const exitTimeout = 124

func waitCommand() *cobra.Command {
	var at Connection
	var timeout time.Duration
	var only selection
	c := &cobra.Command{
		Use:   "wait NAME... | -l LABELS",
		Short: "Wait until HTCJobs and HTCWorkflows have ended",
		Long: `Wait until all of these HTCJobs and HTCWorkflows have ended, either way, as htcd submit --watch does: kubectl wait takes one condition, and
goes on to its limit where the other one (Complete or Failed) becomes true. Those that have ended already are not waited for. One that
is suspended has not ended. With -l it waits for those that have the labels now, at least one. Exit codes:

  0    all have succeeded
  N    jobs, or nodes, have failed, those that are known all with the return code N of the script
  1    jobs have failed otherwise, or were removed, or one does not exist or was deleted
  2    a mistake in the command line
  124  they had not ended within --timeout
  130  interrupted
` + bothKinds,
		Args:              func(cmd *cobra.Command, args []string) error { return only.orNames(cmd, args) },
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	only.label(c.Flags())
	setting.Duration(
		c.Flags(),
		&timeout,
		"timeout",
		0,
		0,
		mostTime,
		"wait for this `time` at most, such as 10m; 0: for any time",
	)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		all, err := where.all(cmd.Context(), args)
		if only.labels != "" {
			all, err = where.labelled(cmd.Context(), only)
		}
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		err = where.wait(ctx, all, displayOn(cmd.ErrOrStderr()))
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.As(err, new(Exit)) {
			return Exit{exitTimeout}
		}
		return err
	}
	return c
}

func deleteCommand() *cobra.Command {
	var at Connection
	var only selection
	c := &cobra.Command{
		Use:   "delete NAME... | --finished | --failed | --suspended",
		Short: "Delete HTCJobs and HTCWorkflows, with their jobs and their output",
		Long: `Delete HTCJobs and HTCWorkflows: those that are named, or with --finished all that have ended, with --failed all that have failed, with
--suspended those that htcd cancel has stopped. Their jobs are removed from HTCondor, and what they have left from htcd's store. --since and --selector narrow it. One that was changed since it
was chosen, for example to run again, is left.

Exit codes: 0 done, 1 one does not exist or could not be deleted (the others are), 2 a mistake in the command line, 130 interrupted.
` + bothKinds,
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	only.flags(c.Flags())
	c.Args = func(cmd *cobra.Command, args []string) error {
		chosen := only.byState()
		switch {
		case chosen && len(args) > 0:
			return setting.Usage{
				Err: errors.New("delete: want names, or --finished, --failed or --suspended, not both"),
			}
		case !chosen && (only.since != 0 || only.labels != ""):
			return setting.Usage{
				Err: errors.New(
					"delete: --since and --selector narrow --finished, --failed or --suspended: want one of these",
				),
			}
		case chosen:
			return only.check()
		}
		return someNames(cmd, args)
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if len(args) > 0 {
			return where.each(
				cmd.Context(),
				args,
				func(o *object) error { return where.delete(cmd, o, metav1.DeleteOptions{}) },
			)
		}
		all, err := where.selected(cmd.Context(), only, kinds...)
		if err != nil {
			return err
		}
		return where.eachOf(cmd.Context(), all, func(o *object) error {
			err := where.delete(
				cmd,
				o,
				metav1.DeleteOptions{
					Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
				},
			)
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s was changed meanwhile and is left\n", o.shown())
				return nil
			}
			return err
		})
	}
	return c
}

// delete deletes an object, and says so.
func (c *cluster) delete(cmd *cobra.Command, o *object, options metav1.DeleteOptions) error {
	if err := c.of(o.kind).remove(cmd.Context(), o.Name, options); err != nil {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), o.fullName(o.Name), "deleted")
	return err
}

// someNames requires at least one argument, and that each can be a name.
func someNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return setting.Usage{
			Err: fmt.Errorf("%s: want the name of an HTCJob or HTCWorkflow, or several", cmd.CommandPath()),
		}
	}
	for _, argument := range args {
		if _, err := named(argument, kinds...); err != nil {
			return err
		}
	}
	return nil
}

// all reads the objects that arguments name.
func (c *cluster) all(ctx context.Context, args []string) (all []*object, err error) {
	for _, argument := range args {
		o, err := c.find(ctx, argument)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// each does something to every object that the arguments name; an error of one does not keep it from the others. A name
// that two objects have is found before anything is done.
func (c *cluster) each(ctx context.Context, args []string, do func(*object) error) error {
	var all []*object
	var failures []error
	for _, argument := range args {
		o, err := c.find(ctx, argument)
		switch {
		case errors.As(err, new(setting.Usage)):
			return err
		case err != nil:
			failures = append(failures, err)
		default:
			all = append(all, o)
		}
	}
	return errors.Join(append(failures, c.eachOf(ctx, all, do))...)
}

func (c *cluster) eachOf(ctx context.Context, all []*object, do func(*object) error) error {
	var failures []error
	for _, o := range all {
		err := do(o)
		if ctx.Err() != nil {
			return Exit{exitInterrupted}
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
