package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"

	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// nodeFlags say which nodes of a workflow are meant.
type nodeFlags struct {
	step, node      string
	sequence, index int
	failed, all     bool
}

func (n *nodeFlags) define(f *pflag.FlagSet) {
	n.defineOne(f)
	setting.Bool(f, &n.failed, "failed", false, "of an HTCWorkflow: all nodes that have failed, or those of --step")
}

// defineOne is for commands that take one node.
func (n *nodeFlags) defineOne(f *pflag.FlagSet) {
	setting.Text(f, &n.step, "step", "", stepName, "of an HTCWorkflow: the step of this `name`")
	setting.Text(f, &n.node, "node", "", nodeName, "of an HTCWorkflow with spec.graph: the node of this `name`")
	setting.Int(f, &n.sequence, "sequence", 0, 0, maxNumber, "with --step: the sequence's `number`, from 0")
	setting.Int(
		f,
		&n.index,
		"index",
		0,
		0,
		maxNumber,
		"with --step: the `number` of the job, from 0, where the step has forEach",
	)
}

// given returns the kinds that the flags can be meant for, and whether the flags agree.
func (n *nodeFlags) given(f *pflag.FlagSet) ([]*kind, error) {
	one := f.Changed("sequence") || f.Changed("index")
	ofNodes := n.step != "" || n.failed || n.node != ""
	switch {
	case n.node != "" && (n.step != "" || n.failed || n.all):
		return nil, setting.Usage{Err: errors.New("--node names one node: leave out --step, --failed and --all")}
	case one && (n.step == "" || n.failed || n.all):
		return nil, setting.Usage{
			Err: errors.New("--sequence and --index are for --step, and not for --failed or --all"),
		}
	case ofNodes && f.Changed("proc"):
		return nil, setting.Usage{
			Err: errors.New(
				"--proc is for HTCJobs: an HTCWorkflow's nodes are named by --step, --sequence and --index",
			),
		}
	case n.failed && n.all:
		return nil, setting.Usage{Err: errors.New("--failed and --all: want one of them")}
	case n.failed && f.Changed("follow"):
		return nil, setting.Usage{Err: errors.New("--failed: what has failed has ended, and cannot be followed")}
	case ofNodes:
		return kinds[1:], nil
	case f.Changed("proc"):
		return kinds[:1], nil
	}
	return kinds, nil
}

// fit reports whether the flags say which nodes of a workflow are meant.
func (n *nodeFlags) fit(f *pflag.FlagSet, name string) error {
	switch {
	case n.all && f.Changed("follow"):
		return setting.Usage{
			Err: errors.New("--all and --follow: of an HTCWorkflow one node can be followed, which --step names"),
		}
	case n.node != "":
		return nil
	case n.step == "" && !n.failed && !n.all && f.Lookup("all") == nil:
		return setting.Usage{
			Err: fmt.Errorf(
				"%s is an HTCWorkflow: want --step, and --sequence, for one of its nodes; htcd nodes lists them",
				name,
			),
		}
	case n.step == "" && !n.failed && !n.all:
		return setting.Usage{
			Err: fmt.Errorf(
				"%s is an HTCWorkflow: want --step, and --sequence, for one of its nodes, --failed for all that have failed, or --all; htcd nodes lists them",
				name,
			),
		}
	}
	return nil
}

// place are the parameters of a request that name one node.
func (n *nodeFlags) place() url.Values {
	if n.node != "" {
		return url.Values{"node": {n.node}}
	}
	return url.Values{"step": {n.step}, "sequence": {strconv.Itoa(n.sequence)}, "index": {strconv.Itoa(n.index)}}
}

// nodeLogs prints the output of one node, or of all that have failed, or of all. One without output does not prevent
// the others from being shown.
func (c *cluster) nodeLogs(
	ctx context.Context,
	name string,
	n nodeFlags,
	common func() url.Values,
	w, warnings io.Writer,
) error {
	if n.node != "" {
		values := common()
		values.Set("node", n.node)
		return c.log(ctx, name, values, w, nil)
	}
	parameters := func(step, sequence string, index int) url.Values {
		values := common()
		values.Set("step", step)
		values.Set("sequence", sequence)
		values.Set("index", strconv.Itoa(index))
		return values
	}
	if !n.failed && !n.all {
		return c.log(ctx, name, parameters(n.step, strconv.Itoa(n.sequence), n.index), w, nil)
	}
	attempt, _ := strconv.Atoi(common().Get("attempt")) // as it was made
	silent, shown := 0, 0
	state := ""
	if n.failed {
		state = string(aggregate.NodeFailed)
	}
	err := c.nodes(ctx, name, selected(state, n.step, attempt), func(node aggregate.Node) error {
		shown++
		called := fmt.Sprintf("[%s %s %d] ", node.Step, sequenceOf(node), node.Index)
		if node.Name != "" {
			called = "[" + node.Step + " " + node.Name + "] "
		}
		lines := &prefixed{w: w, mu: new(sync.Mutex), prefix: called}
		err := c.log(ctx, name, parameters(node.Step, sequenceOf(node), node.Index), lines, nil)
		lines.finish()
		if err == nil || ctx.Err() != nil || errors.As(err, new(errHere)) {
			return err
		}
		if common().Get("stream") == "stderr" && node.Stderr != "" { // which a callback brought
			_, err := lines.Write([]byte(node.Stderr))
			lines.finish()
			return err
		}
		silent++
		_, err = fmt.Fprintln(warnings, called+Plain(err.Error()))
		return err
	})
	if err == nil && silent > 0 {
		return fmt.Errorf("%d of %d nodes could not be shown", silent, shown)
	}
	return err
}
