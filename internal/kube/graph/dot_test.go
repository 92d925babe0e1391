package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestTheStepsAreDrawn(t *testing.T) {
	g := made(
		t,
		finally(
			steps(
				step("generate"),
				step("simulate", each(4), pulls("generate", "events.root")),
				step("check", needs("generate")),
				step("plot", all, needs("simulate")),
			),
			v1alpha1.StepWork{Name: "report"},
		),
	)
	require.Equal(t, `digraph "scan" {
  node [shape=box, style=filled, fillcolor=white, fontname=sans];
  "generate" [label="generate\n50 nodes", fillcolor=white];
  "simulate" [label="simulate\n200 nodes", fillcolor=white];
  "check" [label="check\n50 nodes", fillcolor=white];
  "plot" [label="plot\n1 node", fillcolor=white];
  "report" [label="report\n1 node", fillcolor=white];
  "generate" -> "simulate" [label="events.root"];
  "generate" -> "check";
  "simulate" -> "plot";
  "check" -> "report" [style=dashed];
  "plot" -> "report" [style=dashed];
}
`, g.DOT("scan", 50, nil))
	require.Contains(t, g.DOT("scan", 0, nil), `"simulate" [label="simulate\n4 in each sequence", fillcolor=white];`)
	status := func(c v1alpha1.NodeCounts) []v1alpha1.StepStatus {
		return []v1alpha1.StepStatus{{Name: "simulate", NodeCounts: c}}
	}
	for want, c := range map[string]v1alpha1.NodeCounts{
		`[label="simulate\n200/200 done", fillcolor=palegreen]`:                                      {Total: 200, Done: 200},
		`[label="simulate\n0/200 done", fillcolor=white]`:                                            {Total: 200},
		`[label="simulate\n7/200 done\n16 running\n64 idle", fillcolor=lightblue]`:                   {Total: 200, Done: 7, Running: 16, Idle: 64},
		`[label="simulate\n7/200 done\n1 running\n2 held\n3 failed\n4 futile", fillcolor=lightpink]`: {Total: 200, Done: 7, Running: 1, Held: 2, Failed: 3, Futile: 4},
	} {
		require.Contains(t, g.DOT("scan", 50, status(c)), want)
	}
}

func TestWhatAFileSaysCannotLeaveItsQuotes(t *testing.T) {
	g := made(t, steps(step("a\"]\n;x\\")))
	require.Contains(t, g.DOT("a\"b", 1, nil), `digraph "a\"b" {`)
	require.Contains(t, g.DOT("a", 1, nil), `"a\"]\n;x\\" [label="a\"]\n;x\\\n1 node", fillcolor=white];`)
}

func TestTheNodesOfAListedGraphAreDrawn(t *testing.T) {
	g, err := read(
		listed(
			steps(step("a"), step("b")),
			[]v1alpha1.GraphNode{node("one", "a"), node("two", "b")},
			edge("one", "two"),
		),
		nil,
	)
	require.NoError(t, err)
	dot := g.DOT("x", 1, nil)
	require.Contains(t, dot, `n0 [label="one\na"]`)
	require.Contains(t, dot, "n0 -> n1;")
}
