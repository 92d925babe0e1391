package schedd

import (
	"maps"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

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
func NodesNamed(clusters []int) condor.Constraint {
	return anyOf("ClusterId", clusters).And(condor.NodesTagged)
}
