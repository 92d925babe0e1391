package schedd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestNodesAreAskedForWithTheirTag(t *testing.T) {
	client := tools(t, long, map[string]string{"condor_q": `case "$*" in
*,HTCNode,*,HTCWorkflowDAG,HTCWorkflowNodes,HTCWorkflowRepeats,HTCWorkflowUID,*'-constraint HTCWorkflowUID =?= "u" && HTCWorkflowDAG =?= 2'*) echo '[{"ClusterId":7,"ProcId":0,"JobStatus":2,"HTCWorkflowUID":"u","HTCWorkflowDAG":2,"HTCNode":5}]' ;;
*) exit 1 ;;
esac`})
	var nodes []condor.Job
	require.NoError(
		t,
		client.Query(
			t.Context(),
			Identity{},
			Query{Where: condor.Tag{UID: "u", Attempt: 2}.NodesConstraint(), Nodes: true},
			func(j condor.Job) error { nodes = append(nodes, j); return nil },
		),
	)
	require.Equal(
		t,
		[]condor.Job{{Cluster: 7, Status: condor.Running, Node: condor.NodeTag{UID: "u", DAG: 2, Number: 5}}},
		nodes,
	)
	require.NotContains(t, Projection, condor.AttrNode, "of HTCJobs no more is asked for")
}
