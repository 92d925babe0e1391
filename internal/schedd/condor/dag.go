package condor

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
