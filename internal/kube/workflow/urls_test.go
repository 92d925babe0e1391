package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestANodesFailedTransferNamesItsURL(t *testing.T) {
	step := v1alpha1.Step{
		ForEach: &v1alpha1.ForEach{Count: 2},
		StepWork: v1alpha1.StepWork{Name: "a", Job: v1alpha1.StepJob{
			Outputs: []v1alpha1.StepOutput{
				{Path: "x"},
				{Path: "y", URL: "root://s//{namespace}/{name}/{attempt}/{jobid}/{proc}"},
			},
		}},
	}
	w := &v1alpha1.HTCWorkflow{Spec: v1alpha1.HTCWorkflowSpec{
		Sequences: &v1alpha1.Sequences{Count: new(int32(2))}, Steps: []v1alpha1.Step{step},
	}}
	g, err := graph.New(w.Spec)
	require.NoError(t, err)
	const said = "Transfer output files failure: /dir_1/.htcd-out/.url/1: exit 1"
	node := ledger.Node{
		StepName: "a", Place: ledger.Place{Sequence: 1, Item: 1},
		Proc: ledger.Proc{Namespace: "ns", Name: "scan", Attempt: 9, Message: said},
	}
	s := Situation{
		Workflow: w,
		Graph:    g,
		Attempt:  3,
		DAGs: []DAG{
			{Held: []ledger.Node{node}},
		},
		Failures: []ledger.Node{node, {Place: ledger.Place{Step: 7}, Proc: node.Proc}, {StepName: "b", Proc: node.Proc}},
	}
	s.nameURLs()
	const want = said + "; spec.outputs: root://s//ns/scan/3/job_1/1"
	require.Equal(t, want, s.DAGs[0].Held[0].Message)
	require.Equal(t, want, s.Failures[0].Message)
	for _, n := range s.Failures[1:] {
		require.Equal(t, said, n.Message, "the spec has no such step any more, or another at its place")
	}
}
