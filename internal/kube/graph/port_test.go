package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestAPortThatNamesNoNodeIsExplained(t *testing.T) {
	scan := v1alpha1.HTCWorkflowSpec{
		Sequences: &v1alpha1.Sequences{Count: new(int32(20))},
		Steps:     []v1alpha1.Step{step("a"), step("b"), step("c")},
		Finally:   &v1alpha1.StepWork{Name: "z"},
	}
	scan.Steps[1].ForEach = &v1alpha1.ForEach{Count: 3}
	scan.Steps[2].Pairing = v1alpha1.PairAll
	graph := listed(steps(step("a")), []v1alpha1.GraphNode{node("one", "a"), node("two", "a")})
	tables := listed(steps(step("a")), []v1alpha1.GraphNode{node("one", "a")})
	tables.Graph.NodesFrom = []v1alpha1.ItemsFrom{{}}
	for name, c := range map[string]struct {
		spec v1alpha1.HTCWorkflowSpec
		port v1alpha1.WorkflowPort
		want string // empty: it is a node
	}{
		"a step":                     {scan, v1alpha1.WorkflowPort{Step: "a"}, ""},
		"of a sequence":              {scan, v1alpha1.WorkflowPort{Step: "b", Sequence: 19, Index: 2}, ""},
		"for all":                    {scan, v1alpha1.WorkflowPort{Step: "c"}, ""},
		"the last":                   {scan, v1alpha1.WorkflowPort{Step: "z"}, ""},
		"a node":                     {graph, v1alpha1.WorkflowPort{Node: "two"}, ""},
		"a node by its number":       {graph, v1alpha1.WorkflowPort{Step: "a", Index: 1}, ""},
		"a node of a table":          {tables, v1alpha1.WorkflowPort{Node: "three"}, ""},
		"a number of a table":        {tables, v1alpha1.WorkflowPort{Step: "a", Index: 7}, ""},
		"nothing":                    {scan, v1alpha1.WorkflowPort{}, "a port is of a step or, with spec.graph, of a node: add one of them"},
		"both":                       {graph, v1alpha1.WorkflowPort{Step: "a", Node: "one"}, "node names one node: leave out step, sequence and index"},
		"a node's index":             {graph, v1alpha1.WorkflowPort{Index: 1, Node: "one"}, "node names one node: leave out step, sequence and index"},
		"no graph":                   {scan, v1alpha1.WorkflowPort{Node: "one"}, "without spec.graph nodes have no names: say step, and sequence, in place of node"},
		"no such step":               {scan, v1alpha1.WorkflowPort{Step: "d"}, `there is no step "d": the steps are a, b, c, z`},
		"no such node":               {graph, v1alpha1.WorkflowPort{Node: "six"}, `spec.graph.nodes has no node "six"`},
		"no such sequence":           {scan, v1alpha1.WorkflowPort{Step: "a", Sequence: 20}, "there is no sequence 20: they are numbered 0 to 19"},
		"no such index":              {scan, v1alpha1.WorkflowPort{Step: "b", Index: 3}, "the step b has no job 3: they are numbered 0 to 2"},
		"no such node by its number": {graph, v1alpha1.WorkflowPort{Step: "a", Index: 2}, "the step a has no job 2: they are numbered 0 to 1"},
		"a sequence of one for all":  {scan, v1alpha1.WorkflowPort{Step: "c", Sequence: 1}, "the step c runs once for all sequences: leave sequence out"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Ports = []v1alpha1.WorkflowPort{c.port}
			g, err := New(c.spec)
			require.NoError(t, err)
			err = g.CheckPort(0, (&v1alpha1.HTCWorkflow{Spec: c.spec}).Sequences())
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "spec.ports[0]: "+c.want)
		})
	}
}
