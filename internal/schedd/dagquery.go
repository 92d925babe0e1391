package schedd

import (
	"context"
	"maps"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// QueueNodes is Queue for the nodes of DAGs: the Node of each job is set.
func (c *Client) QueueNodes(ctx context.Context, id Identity, constraint string, fn condor.JobFunc) error {
	return c.queue(ctx, id, question{constraint: constraint, nodes: true}, fn)
}

// HistoryNodes is History for the nodes of DAGs: the Node of each job is set. Nodes enter it as soon as they have
// ended.
func (c *Client) HistoryNodes(
	ctx context.Context,
	id Identity,
	constraint string,
	b HistoryBounds,
	fn condor.JobFunc,
) error {
	return c.history(ctx, id, question{constraint: constraint, nodes: true}, b, fn)
}

// nodeTags are requested of nodes alone, beside fields.
var nodeTags = map[string]func(*condor.Job, classad.Value){
	condor.AttrWorkflow: func(j *condor.Job, v classad.Value) { j.Node.UID = interned(v) },
	condor.AttrDAG:      func(j *condor.Job, v classad.Value) { j.Node.DAG = integer(v) },
	condor.AttrNode:     func(j *condor.Job, v classad.Value) { j.Node.Number = integer(v) },
}

var nodeFields = withMore(fields, nodeTags)

func withMore[T any](some, more map[string]T) map[string]T {
	all := maps.Clone(some)
	maps.Copy(all, more)
	return all
}

// NodesNamed matches the nodes whose jobs are these clusters. There must be some, 4,000 at most: one command-line
// argument holds 128 KiB.
func NodesNamed(clusters []int) string {
	return anyOf("ClusterId", clusters) + " && " + submit.NodesTagged
}
