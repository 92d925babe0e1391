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
	step            string
	sequence, index int
	failed          bool
}

func (n *nodeFlags) define(f *pflag.FlagSet) {
	n.defineOne(f)
	setting.Bool(f, &n.failed, "failed", false, "of an HTCWorkflow: all nodes that have failed, or those of --step")
}

// defineOne is for commands that take one node.
func (n *nodeFlags) defineOne(f *pflag.FlagSet) {
	setting.Text(f, &n.step, "step", "", stepName, "of an HTCWorkflow: the step of this `name`")
	setting.Int(f, &n.sequence, "sequence", 0, 0, maxNumber, "with --step: the sequence's `number`, from 0")
	setting.Int(f, &n.index, "index", 0, 0, maxNumber, "with --step: the `number` of the job, from 0, where the step has forEach")
}

// given reports whether nodes are meant, and whether the flags agree.
func (n *nodeFlags) given(f *pflag.FlagSet) (bool, error) {
	one := f.Changed("sequence") || f.Changed("index")
	ofNodes := n.step != "" || n.failed
	switch {
	case one && (n.step == "" || n.failed):
		return false, setting.Usage{Err: errors.New("--sequence and --index are for --step, and not for --failed")}
	case ofNodes && (f.Changed("proc") || f.Changed("all")):
		return false, setting.Usage{Err: errors.New("--proc and --all are for HTCJobs: an HTCWorkflow's nodes are named by --step, --sequence and --index")}
	case n.failed && f.Changed("follow"):
		return false, setting.Usage{Err: errors.New("--failed: what has failed has ended, and cannot be followed")}
	}
	return ofNodes, nil
}

// place are the parameters of a request that name one node.
func (n *nodeFlags) place() url.Values {
	return url.Values{"step": {n.step}, "sequence": {strconv.Itoa(n.sequence)}, "index": {strconv.Itoa(n.index)}}
}

// nodeLogs prints the output of one node, or of all that have failed. One without output does not prevent the others from being shown.
func (c *cluster) nodeLogs(ctx context.Context, name string, n nodeFlags, common func() url.Values, w, warnings io.Writer) error {
	parameters := func(step, sequence string, index int) url.Values {
		values := common()
		values.Set("step", step)
		values.Set("sequence", sequence)
		values.Set("index", strconv.Itoa(index))
		return values
	}
	if !n.failed {
		return c.log(ctx, name, parameters(n.step, strconv.Itoa(n.sequence), n.index), w, nil)
	}
	attempt, _ := strconv.Atoi(common().Get("attempt")) // as it was made
	silent, shown := 0, 0
	err := c.nodes(ctx, name, selected(string(aggregate.NodeFailed), n.step, attempt), func(node aggregate.Node) error {
		shown++
		called := fmt.Sprintf("[%s %s %d] ", node.Step, sequenceOf(node), node.Index)
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
