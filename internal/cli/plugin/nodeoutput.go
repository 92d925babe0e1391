package plugin

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// outputOf says of which nodes of a workflow the output is wanted.
type outputOf struct {
	step     string
	sequence int
}

func (o *outputOf) flags(f *pflag.FlagSet) {
	setting.Text(f, &o.step, "step", "", stepName, "of an HTCWorkflow: only the step of this `name`")
	setting.Int(
		f,
		&o.sequence,
		"sequence",
		-1,
		-1,
		maxNumber,
		"of an HTCWorkflow: only the sequence of this `number`, from 0; -1: all, and steps that run once for all",
	)
}

// named reads an argument: with a flag for one kind it can name no other.
func (o *outputOf) named(cmd *cobra.Command, argument string) (reference, error) {
	ofNodes, ofJob := o.step != "" || o.sequence >= 0, cmd.Flags().Changed("proc")
	switch {
	case ofNodes && ofJob:
		return reference{}, setting.Usage{
			Err: errors.New("--proc is for HTCJobs: an HTCWorkflow's nodes are named by --step and --sequence"),
		}
	case ofNodes:
		return named(argument, workflowKind)
	case ofJob:
		return named(argument, jobKind)
	}
	return named(argument, kinds...)
}

func (o *outputOf) parameters(attempt int) url.Values {
	parameters := selected("", o.step, attempt)
	if o.sequence >= 0 {
		parameters.Set("sequence", strconv.Itoa(o.sequence))
	}
	return parameters
}

// outputOfNodes copies the output of nodes into a directory, or lists it if there is none.
func (c *cluster) outputOfNodes(cmd *cobra.Command, name string, parameters url.Values, dir string, force bool) error {
	ctx := cmd.Context()
	w, err := c.fetchedWorkflow(ctx, name)
	if err != nil {
		return err
	}
	c.resource = v1alpha1.WorkflowResource
	into := &landing{
		force:    force,
		origin:   origin{HTCWorkflow: c.namespace + "/" + name, UID: string(w.UID)},
		only:     -1,
		nodes:    true,
		places:   placesOfNodes(w),
		terminal: terminalOf(cmd.ErrOrStderr()),
	}
	if dir == "" {
		if _, err := c.listFiles(ctx, cmd.OutOrStdout(), name, parameters, into); err != nil {
			return err
		}
		return into.told(cmd.ErrOrStderr())
	}
	return into.at(dir, func() error {
		return conclude(ctx, cmd.ErrOrStderr(), into, nil, c.fetch(ctx, name, parameters, into))
	})
}

// fetchedWorkflow returns a workflow. Of one that has ended, and whose output is just being fetched, it waits for that.
func (c *cluster) fetchedWorkflow(ctx context.Context, name string) (*v1alpha1.HTCWorkflow, error) {
	for {
		o, err := c.workflows.get(ctx, name)
		if err != nil {
			return nil, err
		}
		w := o.workflow
		fetched := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputFetched)
		if !w.Status.Phase.Terminal() || fetched == nil || fetched.Reason != "Fetching" || !c.comes(name) {
			return w, nil
		}
		if err := pauseFor(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}
