package graph

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestNodesAreNumberedSequenceBySequence(t *testing.T) {
	g := made(t, steps(step("a"), step("b", each(2), pulls("a", "f")), step("c", pulls("b", "x"))))
	nodes := g.Nodes(0, Outcome{Sequences: []int{0, 3}})
	require.Equal(t, []Node{
		{Step: 0, Sequence: 0},
		{Step: 1, Sequence: 0, Index: 0, Parents: []int{0}, Pulls: [][]int{{0}}},
		{Step: 1, Sequence: 0, Index: 1, Parents: []int{0}, Pulls: [][]int{{0}}},
		{Step: 2, Sequence: 0, Parents: []int{1, 2}, Pulls: [][]int{{1, 2}}},
		{Step: 0, Sequence: 3},
		{Step: 1, Sequence: 3, Index: 0, Parents: []int{4}, Pulls: [][]int{{4}}},
		{Step: 1, Sequence: 3, Index: 1, Parents: []int{4}, Pulls: [][]int{{4}}},
		{Step: 2, Sequence: 3, Parents: []int{5, 6}, Pulls: [][]int{{5, 6}}},
	}, nodes)
	require.Equal(t, "b/job_3/1", g.Name(nodes[6]))
	require.Equal(t, "c/job_3", g.Name(nodes[7]))
}

func TestNodesForAllAreNumberedLast(t *testing.T) {
	g := made(t, steps(step("a"), step("b", all, each(2), pulls("a", "f")), step("c", pulls("b", "x"))))
	nodes := g.Nodes(1, Outcome{Sequences: []int{0, 1}})
	require.Equal(t, []Node{
		{Step: 2, Sequence: 0, Parents: []int{2, 3}, Pulls: [][]int{{2, 3}}},
		{Step: 2, Sequence: 1, Parents: []int{2, 3}, Pulls: [][]int{{2, 3}}},
		{Step: 1, Sequence: AllSequences, Index: 0, Pulls: [][]int{nil}},
		{Step: 1, Sequence: AllSequences, Index: 1, Pulls: [][]int{nil}},
	}, nodes)
	require.Equal(t, "b/all/1", g.Name(nodes[3]))
	require.Equal(t, "all", g.JobID(nodes[3]))
	require.Equal(t, "all/1", g.Place(nodes[3]))
}

func TestWhatCanNoLongerRunIsLeftOut(t *testing.T) {
	g := made(
		t,
		finally(
			steps(step("a"), step("b", all), step("c"), step("d", all, needs("b")), step("e", all, needs("c"))),
			v1alpha1.StepWork{Name: "f"},
		),
	)
	require.Equal(t, [][]int{{0}, {1, 2, 3}, {4}, {5}}, g.Levels)
	names := func(level int, o Outcome) (names []string) {
		for _, n := range g.Nodes(level, o) {
			names = append(names, g.Name(n))
		}
		return names
	}
	require.Equal(t, []string{"c/job_7", "b/all", "d/all"}, names(1, Outcome{Sequences: []int{7}}))
	require.Empty(t, names(1, Outcome{}), "no sequence is left for b, so that d has nothing either")
	require.Equal(t, []string{"e/all"}, names(2, Outcome{Sequences: []int{7}}))
	require.Equal(
		t,
		[]string{"e/all"},
		names(2, Outcome{Sequences: []int{7}, Failed: []int{3}}),
		"e needs nothing of d",
	)
	require.Empty(t, names(2, Outcome{Sequences: []int{7}, Failed: []int{1}}), "e needs c, which needed b")
	require.Equal(t, []string{"f/all"}, names(3, Outcome{Failed: []int{1, 3, 4}}), "finally runs whatever happened")
}

func TestTotalsAreThoseOfAllNodes(t *testing.T) {
	g := made(
		t,
		finally(steps(step("a"), step("b", each(4)), step("c", all, each(3)), step("d")), v1alpha1.StepWork{Name: "f"}),
	)
	require.Equal(t, []int{10, 40, 3, 10, 1}, g.Totals(10))
	require.Equal(t, 6, g.PerSequence())
	o := Outcome{Sequences: span(0, 10)}
	counted := make([]int, len(g.Steps))
	for level := range g.Levels {
		for _, n := range g.Nodes(level, o) {
			counted[n.Step]++
		}
	}
	require.Equal(t, g.Totals(10), counted)
}

func TestTooMuchIsRefused(t *testing.T) {
	g := made(t, steps(step("a"), step("b")))
	require.NoError(t, g.Check(50_000))
	require.EqualError(
		t,
		g.Check(50_001),
		"spec.sequences: with 50001 sequences there are 100002 nodes, 50001 of them those of the step \"a\", and a workflow may have 100000: make it several HTCWorkflows",
	)
	g = made(t, steps(step("a", each(1000)), step("b", each(1000))))
	require.NoError(t, g.Check(1))
	require.EqualError(
		t,
		g.Check(2),
		`the nodes depend on each other in 2000000 ways, 2000000 of them those of the step "b", and a workflow may have 1000000: let a step with pairing All, or one without forEach, gather what is before it`,
	)
}

func TestTheNodesOfTheLargestWorkflowAreInOrder(t *testing.T) {
	g := made(
		t,
		steps(
			step("a"),
			step("b", pulls("a", "f")),
			step("c", needs("a")),
			step("d", needs("b", "c")),
			step("e", all, pulls("d", "g")),
		),
	)
	require.NoError(t, g.Check(24_999))
	nodes := g.Nodes(0, Outcome{Sequences: span(0, 24_999)})
	require.Len(t, nodes, 99_996)
	for i, n := range nodes {
		require.Falsef(
			t,
			slices.ContainsFunc(n.Parents, func(p int) bool { return p >= i || nodes[p].Sequence != n.Sequence }),
			"node %d",
			i,
		)
	}
}
