package plugin

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func nodesCommand() *cobra.Command {
	var at Connection
	var state, step, format string
	var attempt int
	c := &cobra.Command{
		Use:   "nodes NAME",
		Short: "List the nodes of an HTCWorkflow",
		Long: `List the nodes of an HTCWorkflow, each one job of a step: where it stands, its id in HTCondor, and how it failed. Nodes of
steps that come later and are not sent yet are not among them. With -o json each node is an object on a line of its own, with the
end of the standard error of those that failed.

Needs the right to get htcworkflows/log of output.htc.cern.ch, which the ClusterRole htcjob-user has.`,
		Args:              arguments(1, "the name of an HTCWorkflow"),
		ValidArgsFunction: at.complete(workflowKind),
	}
	at.Flags(c.Flags())
	setting.Text(
		c.Flags(),
		&state,
		"state",
		"",
		setting.OneOf(words(aggregate.NodeStates)...),
		"only nodes in this `state`: "+strings.Join(words(aggregate.NodeStates), ", "),
	)
	setting.Text(c.Flags(), &step, "step", "", stepName, "only those of the step of this `name`")
	setting.Int(c.Flags(), &attempt, "attempt", 0, 0, maxNumber, "an earlier attempt's `number`; 0: the newest")
	setting.Text(c.Flags(), &format, "output,o", "table", tableJSON, "`format`: table or json")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := named(args[0], workflowKind)
		if err != nil {
			return err
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		where.resource = v1alpha1.WorkflowResource
		show := tableOf(cmd.OutOrStdout())
		if format == "json" {
			lines := jsonLines(cmd.OutOrStdout())
			show = func(n aggregate.Node) error { return lines.Encode(n) }
		}
		return ended(cmd.Context(), where.nodes(cmd.Context(), ref.name, selected(state, step, attempt), show))
	}
	return c
}

func words(states []aggregate.NodeState) (all []string) {
	for _, s := range states {
		all = append(all, string(s))
	}
	return all
}

// selected are the parameters of a list.
func selected(state, step string, attempt int) url.Values {
	values := url.Values{"attempt": {strconv.Itoa(attempt)}}
	for name, value := range map[string]string{"state": state, "step": step} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// nodes calls fn for each node that is selected. When the connection breaks it reconnects, and goes on with the next
// one.
func (c *cluster) nodes(ctx context.Context, name string, selected url.Values, fn func(aggregate.Node) error) error {
	return again(ctx, func() (progress bool, err error) {
		response, err := c.output(ctx, name, "log/nodes", selected)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		if attempt := response.Header.Get(aggregate.HeaderAttempt); attempt != "" {
			selected.Set("attempt", attempt)
		}
		for n, err := range jsonValues[aggregate.Node](response.Body) {
			if err != nil {
				return progress, err
			}
			if err := fn(n); err != nil {
				return progress, errHere{err}
			}
			selected.Set("after", n.NodeKey.String())
			progress = true
		}
		return progress, nil
	})
}

// tableOf prints nodes as lines of a table, and before the first one what the columns are.
func tableOf(w io.Writer) func(aggregate.Node) error {
	const columns = "%-24s %8s %5s  %-8s %-12s %4s  %s"
	row := func(fields ...any) error {
		_, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(columns, fields...), " "))
		return err
	}
	begun := false
	return func(n aggregate.Node) error {
		if !begun {
			begun = true
			if err := row("STEP", "SEQUENCE", "INDEX", "STATE", "JOBID", "EXIT", "REASON"); err != nil {
				return err
			}
		}
		exit := ""
		if n.ExitCode != nil {
			exit = strconv.Itoa(*n.ExitCode)
		}
		reason := strings.Join(strings.Fields(Plain(n.Reason+" "+n.Message)), " ")
		step, sequence, index := n.Step, sequenceOf(n), strconv.Itoa(n.Index)
		if n.Name != "" {
			step, sequence, index = step+"/"+n.Name, "", ""
		}
		return row(step, sequence, index, string(n.State), n.JobID, exit, reason)
	}
}

// sequenceOf is a node's sequence as commands take it.
func sequenceOf(n aggregate.Node) string {
	if n.Sequence == nil {
		return "all"
	}
	return strconv.Itoa(*n.Sequence)
}
