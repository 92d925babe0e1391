package graph

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func node(n v1alpha1.NodeName, of name) v1alpha1.GraphNode {
	return v1alpha1.GraphNode{Name: n, Step: of, Variables: v1alpha1.Item{"FILE": v1alpha1.ItemValue(n) + ".root"}}
}

func edge(parents, children string) v1alpha1.GraphEdge {
	var e v1alpha1.GraphEdge
	for _, n := range strings.Fields(parents) {
		e.Parents = append(e.Parents, v1alpha1.NodeName(n))
	}
	for _, n := range strings.Fields(children) {
		e.Children = append(e.Children, v1alpha1.NodeName(n))
	}
	return e
}

func listed(s spec, nodes []v1alpha1.GraphNode, edges ...v1alpha1.GraphEdge) spec {
	s.Graph = &v1alpha1.Graph{Nodes: nodes, Edges: edges}
	return s
}

// read makes the graph of a spec whose tables are in ConfigMaps of these names.
func read(s spec, maps map[string]string) (*Graph, error) {
	g, err := New(s)
	if err != nil {
		return nil, err
	}
	_, tables, err := Read(s, func(string, string) error { return nil }, func(from v1alpha1.ItemsFrom) ([]byte, error) {
		text, there := maps[from.ConfigMapKeyRef.Name]
		if !there {
			return nil, nil
		}
		return []byte(text), nil
	})
	if err != nil {
		return nil, err
	}
	g.Fill(tables)
	return g, g.Check(1)
}

func table(configMap string) v1alpha1.ItemsFrom {
	return v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: configMap, Key: "table"}}
}

func TestNodesAndEdgesAreAnyGraph(t *testing.T) {
	// Steps alternate, which no graph of steps could say.
	s := listed(
		steps(step("a", pulls("a", "out"), pulls("b", "out")), step("b")),
		[]v1alpha1.GraphNode{
			node("one", "a"),
			node("two", "b"),
			node("three", "a"),
		},
		edge("one", "two"),
		edge("one two", "three"),
		edge("two", "three"),
	)
	s.Finally = &v1alpha1.StepWork{Name: "f", Pull: []v1alpha1.Pull{{From: "a", Path: "out"}}}
	g, err := read(s, nil)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 1}, {2}}, g.Levels)
	require.Equal(t, []int{2, 1, 1}, g.Totals(1))
	nodes := g.Nodes(0, Outcome{Sequences: []int{0}})
	require.Equal(t, []Node{
		{Step: 0, Index: 0, Name: "one", Pulls: [][]int{nil, nil}},
		{Step: 0, Index: 1, Name: "three", Parents: []int{0, 2}, Pulls: [][]int{{0}, {2}}},
		{Step: 1, Index: 0, Name: "two", Parents: []int{0}},
	}, nodes)
	require.Equal(t, "a/three", g.Name(nodes[1]))
	require.Equal(t, "three", g.Place(nodes[1]))
	require.Equal(t, "FILE=three.root\n", g.Item(nodes[1]))
	last := g.Nodes(1, Outcome{})
	require.Equal(t, "f/all", g.Name(last[0]))
	require.Equal(
		t,
		[]Node{{Name: "one"}, {Index: 1, Name: "three"}},
		g.Sources(last[0], g.Steps[2].Pulls[0], []int{0}),
	)
}

func TestNodesAndEdgesMayStandInTables(t *testing.T) {
	s := steps(step("a"), step("b"))
	s.Graph = &v1alpha1.Graph{
		NodesFrom: []v1alpha1.ItemsFrom{table("nodes"), table("more")},
		EdgesFrom: []v1alpha1.ItemsFrom{table("edges")},
	}
	maps := map[string]string{
		"nodes": "node,step,SEED,priority\nx,a,1,-7\ny,a,2,\n",
		"more":  `[{"node": "z", "step": "b"}]`,
		"edges": "parents,children\nx y,z\n",
	}
	g, err := read(s, maps)
	require.NoError(t, err)
	nodes := g.Nodes(0, Outcome{Sequences: []int{0}})
	require.Equal(t, Node{Step: 1, Name: "z", Parents: []int{0, 1}}, nodes[2])
	require.Equal(t, "SEED=2\n", g.Item(nodes[1]))
	require.Equal(t, -7, *g.Priority(nodes[0]))
	require.Nil(t, g.Priority(nodes[1]))
	require.Equal(t, "x", nodes[0].Name)
	maps["nodes"] = "node,step,priority\nx,a,high\n"
	_, err = read(s, maps)
	require.ErrorContains(t, err, `row 1: priority: expected a number from -1000000 to 1000000, found "high"`)
	delete(maps, "nodes")
	g, err = read(s, maps)
	require.NoError(t, err, "what cannot be read is not judged")
	require.Zero(t, g.Steps[0].Each)
}

func TestATableOfAWorkflowHasNoMoreRowsThanThereMayBeNodes(t *testing.T) {
	s := steps(step("a"))
	s.Graph = &v1alpha1.Graph{NodesFrom: []v1alpha1.ItemsFrom{table("nodes")}}
	_, err := read(s, map[string]string{"nodes": "node,step\n" + strings.Repeat("x,a\n", 100_001)})
	require.ErrorContains(t, err, "expected at most 100000 items, found more")
}

func TestAllTablesOfAWorkflowAreBoundedTogether(t *testing.T) {
	s := steps(step("a"))
	s.Graph = &v1alpha1.Graph{NodesFrom: []v1alpha1.ItemsFrom{table("nodes")}}
	maps := map[string]string{"nodes": "node,step\nx,a\n", "edges": "parents,children\n"}
	maps["edges"] += strings.Repeat("x,"+strings.Repeat("x ", 8_000)+"x\n", 900)
	for range 50 {
		s.Graph.EdgesFrom = append(s.Graph.EdgesFrom, table("edges"))
	}
	_, err := read(s, maps)
	require.EqualError(
		t,
		err,
		"spec.graph.edgesFrom[2]: configmap edges, key table: with it all tables have more than 32 MiB: make it several HTCWorkflows",
	)
}

func TestAMistakeInNodesAndEdgesIsNamed(t *testing.T) {
	two := []v1alpha1.GraphNode{node("one", "a"), node("two", "a")}
	inSequences := listed(steps(step("a")), two)
	inSequences.Sequences = &v1alpha1.Sequences{}
	repeating := listed(steps(step("a")), two)
	repeating.Rules = []v1alpha1.Rule{{Action: v1alpha1.ActionRepeat}}
	inTables := steps(step("a"))
	inTables.Graph = &v1alpha1.Graph{
		NodesFrom: []v1alpha1.ItemsFrom{table("nodes")},
		EdgesFrom: []v1alpha1.ItemsFrom{table("edges")},
	}
	for what, c := range map[string]struct {
		spec  spec
		maps  map[string]string
		words string
	}{
		"an unknown step":         {listed(steps(step("a")), []v1alpha1.GraphNode{node("one", "b")}), nil, `spec.graph.nodes, row 1: the node one is of the step "b", and spec.steps has none of that name`},
		"two nodes of one name":   {listed(steps(step("a")), append(two, two[0])), nil, "spec.graph.nodes, row 3: there are two nodes one: give each a name of its own"},
		"an unknown node":         {listed(steps(step("a")), two, edge("one", "three")), nil, `spec.graph.edges, row 1: children: the graph has no node "three"`},
		"a node before itself":    {listed(steps(step("a")), two, edge("one", "two one")), nil, "spec.graph: the node one comes before itself"},
		"a cycle":                 {listed(steps(step("a")), two, edge("one", "two"), edge("two", "one")), nil, "spec.graph: no node of a cycle could ever run: one, which needs two, which needs one"},
		"a step without a node":   {listed(steps(step("a"), step("b")), two), nil, `spec.steps[1]: spec.graph has no node of the step "b": leave the step out, or add one`},
		"sequences beside it":     {inSequences, nil, "spec.sequences: spec.graph says how often each step runs: leave one of them out"},
		"needs beside it":         {listed(steps(step("a", needs())), two), nil, "spec.steps[0]: spec.graph says what comes before which: leave out needs, forEach and pairing"},
		"a rule that repeats":     {repeating, nil, "spec.rules[0]: Repeat is about sequences, and with spec.graph there are none: leave it out"},
		"a variable called node":  {listed(steps(step("a")), []v1alpha1.GraphNode{{Name: "x", Step: "a", Variables: v1alpha1.Item{"node": "1"}}}), nil, "spec.graph.nodes[0].variables: node, step and priority are columns of tables: choose another name than node"},
		"a row without a name":    {inTables, map[string]string{"nodes": "step,A\na,1\n", "edges": ""}, `spec.graph.nodesFrom[0], row 1: node: expected a name of at most 63 letters, digits and _ . -, found ""`},
		"another column of edges": {inTables, map[string]string{"nodes": "node,step\nx,a\n", "edges": "from,to\nx,x\n"}, `spec.graph.edgesFrom[0]: configmap edges, key table: line 1: column 1: expected the names of the variables in the first line, separated by commas: expected the columns parents, children and perhaps outcome, found "from"`},
		"an edge to nowhere":      {inTables, map[string]string{"nodes": "node,step\nx,a\n", "edges": "parents,children\nx,\n"}, "spec.graph.edgesFrom[0], row 1: children: expected names of nodes, separated by blanks, found none"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := read(c.spec, c.maps)
			require.EqualError(t, err, c.words)
		})
	}
}

func TestAConfigMapThatCannotBeReadIsTold(t *testing.T) {
	s := steps(step("a"))
	s.Graph = &v1alpha1.Graph{NodesFrom: []v1alpha1.ItemsFrom{table("nodes")}}
	away := errors.New("away")
	_, _, err := Read(s, nil, func(v1alpha1.ItemsFrom) ([]byte, error) { return nil, away })
	require.ErrorIs(t, err, away)
}

func TestAHundredThousandNodesAndAMillionEdgesAreTheMost(t *testing.T) {
	chain := func(n int, edges ...string) error {
		s := steps(step("a"))
		s.Graph = &v1alpha1.Graph{
			NodesFrom: []v1alpha1.ItemsFrom{table("nodes")},
			EdgesFrom: []v1alpha1.ItemsFrom{table("edges")},
		}
		var nodes, before strings.Builder
		nodes.WriteString("node,step\n")
		before.WriteString("parents,children\n" + strings.Join(edges, ""))
		for i := range n {
			fmt.Fprintf(&nodes, "n%d,a\n", i)
			if i > 0 {
				fmt.Fprintf(&before, "n%d,n%d\n", i-1, i)
			}
		}
		_, err := read(s, map[string]string{"nodes": nodes.String(), "edges": before.String()})
		return err
	}
	require.NoError(t, chain(99_999))
	require.ErrorContains(t, chain(20, "n19,n0\n"), "which needs n11, which needs 10 others, which needs n0")
	var wide, after strings.Builder
	for i := range 1_001 {
		fmt.Fprintf(&wide, " n%d", i)
		fmt.Fprintf(&after, " n%d", i+1_001)
	}
	require.EqualError(
		t,
		chain(3_000, wide.String()+","+after.String()+"\n"),
		"spec.graph: the nodes depend on each other in more than 1000000 ways, which is what a workflow may have: let a node between them gather what is before it",
	)
}
