package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// exitIncomplete is the exit code of a get-output if the output of some job is missing.
const exitIncomplete = 3

// mostReasons bounds how many of the missing jobs are asked about one by one.
const mostReasons = 5

func getOutputCommand() *cobra.Command {
	var at Connection
	var nodes outputOf
	var proc, attempt int
	var force, list bool
	c := &cobra.Command{
		Use:   "get-output NAME (DIR | --list)",
		Short: "Copy the output of an HTCJob's jobs, or an HTCWorkflow's nodes, into a directory",
		Long: `Copy what the ended jobs of an HTCJob brought back into a directory, which is made where it is not there: DIR/0
has the files of its first job, stdout and stderr among them. spec.landing of the HTCJob may give them other places in DIR;
what two jobs would have at one place is in DIR/N for the second, N being its number, and said.

Called again after it was interrupted, or while more jobs end, it copies what is not there yet. A job's directory
appears when it is complete. DIR/.htcd-output lists what was put there, and for which HTCJob and attempt: with --force
those files are brought again and replaced, and nothing else. A directory of another HTCJob or attempt is refused.

Of an HTCWorkflow, DIR/STEP/JOBID has the files of a node, DIR/STEP/JOBID/NUMBER with forEach, unless job.landing of its step gives
them other places: of all nodes, or of those of --step and --sequence. While it goes on, this is what htcd has fetched so far; htcd nodes shows where the other nodes stand.

With --list it copies nothing and prints the job, the size in bytes and the path of each file instead, and the first of what
the jobs have written elsewhere (status.outputs), with the checksum of the file or of the artifact's manifest.

  0    the output of all jobs that were asked for is there
  1    something could not be done
  2    a mistake in the command line
  3    the output of some jobs is missing: they have not ended, they left none, or the connection was lost; they are named
  130  interrupted; what is missing is named
` + bothKinds,
	}
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return at.complete(kinds...)(cmd, args, begun)
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if list {
			return arguments(1, "with --list, only a name")(cmd, args)
		}
		return arguments(2, "a name and a directory")(cmd, args)
	}
	at.Flags(c.Flags())
	setting.Int(c.Flags(), &proc, "proc,p", -1, -1, maxNumber, "`number` of the only job to fetch; -1: all")
	setting.Int(
		c.Flags(),
		&attempt,
		"attempt",
		0,
		0,
		maxNumber,
		"an earlier attempt's `number`, while its output is kept; 0: the newest",
	)
	setting.Bool(
		c.Flags(),
		&force,
		"force",
		false,
		"fetch again, and replace, files that this command has put there for the same attempt",
	)
	setting.Bool(c.Flags(), &list, "list,l", false, "print names and sizes, and copy nothing")
	nodes.flags(c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := nodes.named(cmd, args[0])
		if err != nil {
			return err
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		dir := ""
		if !list {
			dir = args[1]
		}
		o, err := where.read(cmd.Context(), ref)
		switch {
		case err != nil:
			return err
		case o.workflow != nil:
			return where.outputOfNodes(cmd, o.Name, nodes.parameters(attempt), dir, force)
		case list:
			return where.list(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o.job, proc, attempt)
		}
		places, err := where.placesOf(cmd.Context(), o.job)
		if err != nil {
			return err
		}
		into := &landing{
			force:    force,
			origin:   origin{HTCJob: where.namespace + "/" + o.Name, UID: string(o.UID)},
			only:     proc,
			jobs:     o.job.Jobs(),
			places:   places,
			terminal: terminalOf(cmd.ErrOrStderr()),
		}
		return into.at(dir, func() error {
			reasons, err := where.bring(cmd.Context(), o.Name, attempt, into)
			return conclude(cmd.Context(), cmd.ErrOrStderr(), into, reasons, err)
		})
	}
	return c
}

// at opens the directory while something is done.
func (l *landing) at(dir string, do func() error) error {
	err := os.MkdirAll(dir, 0o777) // #nosec G301 -- the user's umask decides
	if err != nil {
		return err
	}
	if l.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer l.root.Close()
	return do()
}

// bring fetches the output of all wanted jobs, and waits for output on its way. It returns the reasons why others are
// missing.
func (c *cluster) bring(ctx context.Context, name string, attempt int, into *landing) (reasons []string, err error) {
	if err := c.fetch(ctx, name, procOf(into.only, attempt), into); err != nil {
		return nil, err
	}
	for _, proc := range into.missing() {
		if len(reasons) == mostReasons {
			break
		}
		into.next = proc
		switch err := c.fetch(ctx, name, procOf(proc, into.origin.Attempt), into); {
		case err == nil:
		case apierrors.IsConflict(err), apierrors.IsNotFound(err): // there is none, or none yet
			reasons = append(reasons, err.Error())
		default:
			return reasons, err
		}
	}
	return reasons, nil
}

// conclude reports what was fetched and what is missing, and ends the command accordingly.
func conclude(ctx context.Context, w io.Writer, into *landing, reasons []string, err error) error {
	if err != nil && !into.claimed && !apierrors.IsConflict(err) {
		return ended(ctx, err) // nothing is known of its jobs
	}
	if into.terminal != nil {
		fmt.Fprint(into.terminal, "\r\x1b[K")
	}
	already := ""
	if into.there > 0 {
		already = fmt.Sprintf(", there already: %d", into.there)
	}
	fmt.Fprintf(w, "%s whose output is in %s now: %d%s\n", into.units(), into.root.Name(), into.came, already)
	for i, clash := range into.clashes {
		if i == mostReasons {
			fmt.Fprintf(w, "%d more files are in the directories of their %s\n", len(into.clashes)-i, into.homes())
			break
		}
		fmt.Fprintln(w, Plain(clash))
	}
	missing := into.lacks()
	if missing != "" {
		fmt.Fprintf(w, "%s whose output is missing: %s\n", into.units(), missing)
	}
	for _, reason := range reasons {
		fmt.Fprintln(w, Plain(reason))
	}
	switch {
	case ctx.Err() != nil:
		return Exit{exitInterrupted}
	case err != nil && !errors.As(err, new(errHere)):
		fmt.Fprintln(w, Plain(err.Error()))
		return Exit{exitIncomplete}
	case err != nil:
		return err
	case missing != "":
		return Exit{exitIncomplete}
	}
	return nil
}

// units is what there is output of.
func (l *landing) units() string {
	if l.nodes {
		return "nodes"
	}
	return "jobs"
}

// homes is by what they have directories of their own.
func (l *landing) homes() string {
	if l.nodes {
		return "nodes"
	}
	return "jobs' numbers"
}

// lacks says what is missing; empty: nothing.
func (l *landing) lacks() string {
	if n := l.jobs - len(l.has); l.nodes && n > 0 {
		return strconv.Itoa(n)
	}
	return ranges(l.missing())
}

// ranges writes ascending numbers as 0, 3-5.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		first, last := numbers[i], numbers[i]
		for i++; i < len(numbers) && numbers[i] == last+1; i++ {
			last++
		}
		if first == last {
			parts = append(parts, strconv.Itoa(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(parts, ", ")
}

// procOf are the parameters for one job, or for all (-1).
func procOf(proc, attempt int) url.Values {
	parameters := url.Values{"attempt": {strconv.Itoa(attempt)}}
	if proc >= 0 {
		parameters.Set("proc", strconv.Itoa(proc))
	}
	return parameters
}

// fetch unpacks an archive, over as many connections as needed.
func (c *cluster) fetch(ctx context.Context, name string, parameters url.Values, into *landing) error {
	try := func() (bool, error) {
		if !parameters.Has("proc") && into.next > 0 {
			parameters.Set("from", strconv.Itoa(into.next))
		}
		response, err := c.output(ctx, name, "log/archive", parameters)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		before := into.next
		if !into.claimed {
			into.origin.Attempt, _ = strconv.Atoi(response.Header.Get(aggregate.HeaderAttempt)) // else it is 0
			if jobs, err := strconv.Atoi(response.Header.Get(aggregate.HeaderJobs)); err == nil {
				into.jobs = jobs
			}
			parameters.Set("attempt", strconv.Itoa(into.origin.Attempt))
			if err := into.claim(); err != nil {
				return false, errHere{err}
			}
		}
		err = into.unpack(response.Body)
		return into.next > before, err
	}
	if _, err := try(); err == nil || !into.claimed || !passing(err) {
		return err
	}
	return again(ctx, try)
}
