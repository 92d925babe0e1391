package condor

import (
	"fmt"

	"htc.cern.ch/htcd/internal/classad"
)

// NodeTag is what the ads of a DAG's nodes carry. They have no HTCJobUID.
type NodeTag struct {
	UID    string // HTCWorkflowUID: metadata.uid of the HTCWorkflow
	DAG    int    // HTCWorkflowDAG: Tag.Attempt of the DAG
	Number int    // HTCNode: number in DAG.Nodes
}

// The names of its attributes.
const (
	AttrWorkflow = "HTCWorkflowUID"
	AttrDAG      = "HTCWorkflowDAG"
	AttrNode     = "HTCNode"
)

// NodesConstraint matches the nodes of the DAG that has this tag, but not the DAG's own job.
func (t Tag) NodesConstraint() string {
	return fmt.Sprintf("%s =?= %s && %s =?= %d", AttrWorkflow, classad.Quote(t.UID), AttrDAG, t.Attempt)
}
