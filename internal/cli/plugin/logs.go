package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// mostFollowed is how many jobs are followed at once.
const mostFollowed = 16

func logsCommand() *cobra.Command {
	var at Connection
	var proc, tail, attempt int
	var stderr, follow bool
	var node nodeFlags
	c := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the output of an HTCJob's job, or of an HTCWorkflow's node",
		Long: `Print what a job of an HTCJob has written: from where htcd keeps it when the job has ended, from the node
when it runs. With --follow wait for it, and go on until the job has ended. With --all a line longer than 64 KiB is
shown as several. A job that has variables of its own (items, itemsFrom, parameters) is named by them as well: with --all
before each line, else on the standard error.

Of an HTCWorkflow --step simulate --sequence 17 shows one node, --failed all that have failed and --all all of them (or those of --step), one
after the other, each line with the node before it. What a node has left is fetched some time after its end.

Needs the right to get htcjobs/log and htcworkflows/log of output.htc.cern.ch, which the ClusterRole htcjob-user has.
` + bothKinds,
		Args:              arguments(1, "the name of an HTCJob or HTCWorkflow"),
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	setting.Int(c.Flags(), &proc, "proc,p", 0, 0, maxNumber, "`number` of the job, from 0")
	setting.Bool(c.Flags(), &node.all, "all", false, "all jobs or nodes, each line with its job or node before it")
	setting.Int(
		c.Flags(),
		&attempt,
		"attempt",
		0,
		0,
		maxNumber,
		"an earlier attempt's `number`, while its output is kept; 0: the newest",
	)
	setting.Bool(c.Flags(), &stderr, "stderr", false, "its standard error instead of its standard output")
	setting.Bool(c.Flags(), &follow, "follow,f", false, "continue until the job has ended")
	setting.Int(c.Flags(), &tail, "tail", -1, -1, maxNumber, "only the last `lines` of the existing output; -1: all")
	node.define(c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		among, err := node.given(cmd.Flags())
		if err != nil {
			return err
		}
		ref, err := named(args[0], among...)
		if err != nil {
			return err
		}
		if node.all && cmd.Flags().Changed("proc") {
			return setting.Usage{Err: errors.New("--proc and --all: want one of them")}
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if ref, err = where.resolve(cmd.Context(), ref); err != nil {
			return err
		}
		name := ref.name
		common := func() url.Values {
			values := url.Values{"attempt": {strconv.Itoa(attempt)}}
			if stderr {
				values.Set("stream", "stderr")
			}
			if follow {
				values.Set("follow", "true")
			}
			if tail >= 0 {
				values.Set("tailLines", strconv.Itoa(tail))
			}
			return values
		}
		if ref.kind == workflowKind {
			if err := node.fit(cmd.Flags(), name); err != nil {
				return err
			}
			where.resource = v1alpha1.WorkflowResource
			return ended(
				cmd.Context(),
				where.nodeLogs(cmd.Context(), name, node, common, cmd.OutOrStdout(), cmd.ErrOrStderr()),
			)
		}
		parameters := func(proc int) url.Values {
			values := common()
			values.Set("proc", strconv.Itoa(proc))
			return values
		}
		if !node.all {
			named := func(item string) { fmt.Fprintf(cmd.ErrOrStderr(), "job %d: %s\n", proc, item) }
			return ended(cmd.Context(), where.log(cmd.Context(), name, parameters(proc), cmd.OutOrStdout(), named))
		}
		return ended(
			cmd.Context(),
			where.logs(cmd.Context(), name, follow, parameters, cmd.OutOrStdout(), cmd.ErrOrStderr()),
		)
	}
	return c
}

// ended gives an interrupted command its exit code.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return Exit{exitInterrupted}
	}
	return err
}

// logs prints the output of all jobs, one after the other, or all at once if they are followed. A job without output
// does not prevent the others from being shown.
func (c *cluster) logs(
	ctx context.Context,
	name string,
	follow bool,
	parameters func(proc int) url.Values,
	w, warnings io.Writer,
) error {
	o, err := c.jobs.get(ctx, name)
	if err != nil {
		return err
	}
	jobs, atOnce := o.job.Jobs(), 1
	if follow {
		if atOnce = jobs; atOnce > mostFollowed {
			return setting.Usage{
				Err: fmt.Errorf(
					"%s has %d jobs: at most %d can be followed at once; take one with --proc",
					name,
					atOnce,
					mostFollowed,
				),
			}
		}
	}
	var mu sync.Mutex
	silent := 0
	var group errgroup.Group
	group.SetLimit(atOnce)
	for proc := range jobs {
		group.Go(func() error {
			lines := &prefixed{w: w, mu: &mu, prefix: fmt.Sprintf("[%d] ", proc)}
			named := func(item string) { lines.prefix = fmt.Sprintf("[%d %s] ", proc, item) }
			err := c.log(ctx, name, parameters(proc), lines, named)
			lines.finish()
			if err == nil || ctx.Err() != nil || errors.As(err, new(errHere)) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			silent++
			fmt.Fprintf(warnings, "[%d] %s\n", proc, Plain(err.Error()))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if silent > 0 {
		return fmt.Errorf("%d of %d jobs could not be shown", silent, jobs)
	}
	return nil
}

// longestLine is how many bytes of an unfinished line are kept. A longer line is shown as several.
const longestLine = 64 << 10

// prefixed writes whole lines with a prefix.
type prefixed struct {
	w      io.Writer
	mu     *sync.Mutex
	prefix string
	rest   []byte
}

func (p *prefixed) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		some := b[n:min(len(b), n+longestLine-len(p.rest))]
		if err := p.add(some); err != nil {
			return n, err
		}
		n += len(some)
	}
	return len(b), nil
}

// add writes the lines that are now complete; at most longestLine bytes are kept.
func (p *prefixed) add(b []byte) error {
	p.rest = append(p.rest, b...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	if end == 0 && len(p.rest) < longestLine {
		return nil
	}
	if end == 0 {
		p.rest = append(p.rest, '\n')
		end = len(p.rest)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(p.rest[:end]) {
		out.WriteString(p.prefix)
		out.Write(line)
	}
	p.rest = append(p.rest[:0], p.rest[end:]...)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.w.Write(out.Bytes())
	return err
}

// finish writes an unterminated last line.
func (p *prefixed) finish() {
	if len(p.rest) > 0 {
		_, _ = p.Write([]byte("\n")) // an error here has already occurred before
	}
}
