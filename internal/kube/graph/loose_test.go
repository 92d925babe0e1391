package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// afterEnd is needs of a step that must only have ended.
func afterEnd(of name, by ...string) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) { s.Needs = append(s.Needs, v1alpha1.Need{Step: of, By: by, Any: true}) }
}

func TestANodeMayComeAfterTheEndOfOthersWhateverThatWas(t *testing.T) {
	g := made(
		t,
		steps(step("a", each(2)), step("b", each(2)), step("c", each(2), needs("a"), afterEnd("b", "HTCPROCID"))),
	)
	require.NoError(t, g.Check(1))
	nodes := g.Nodes(0, Outcome{Sequences: []int{0}})
	require.Equal(t, Node{Step: 2, Index: 1, Parents: []int{0, 1}, Ended: []int{3}}, nodes[5])
	require.Equal(
		t,
		[]bool{true, true, true, false, true, false},
		g.Kept(nodes, []bool{true, true, true, false, true, true}, nil),
		"it runs again after what does",
	)
	require.Contains(t, g.DOT("x", 1, nil), `"b" -> "c" [style=dashed]`)
}

func TestAStepForAllComesAfterTheEndOfSequencesThatHaveAllFailed(t *testing.T) {
	g := made(t, steps(step("a"), step("b", all, needs(), afterEnd("a")), step("c", all, needs("a"))))
	o := Outcome{}
	require.Equal(t, []bool{false, false, true}, g.FutileSteps(o))
	require.Equal(t, []Node{{Step: 1, Sequence: AllSequences}}, g.Nodes(1, o))
}

func TestANodeOfAListedGraphMayComeAfterTheEndOfOthers(t *testing.T) {
	loose := edge("x y", "z")
	loose.Outcome = v1alpha1.OutcomeAny
	g, err := read(
		listed(
			steps(step("a", pulls("a", "out"))),
			[]v1alpha1.GraphNode{node("x", "a"), node("y", "a"), node("z", "a")},
			loose,
			edge("y", "z"),
		),
		nil,
	)
	require.NoError(t, err)
	z := g.Nodes(0, Outcome{})[2]
	require.Equal(t, Node{Name: "z", Index: 2, Parents: []int{1}, Ended: []int{0}, Pulls: [][]int{{1, 0}}}, z)
	require.Contains(t, g.DOT("x", 1, nil), "n0 -> n2 [style=dashed];\n")

	_, err = read(listed(steps(step("a")), []v1alpha1.GraphNode{node("x", "a"), node("z", "a")}, loose), nil)
	require.ErrorContains(t, err, `the graph has no node "y"`)
	s := listed(steps(step("a")), []v1alpha1.GraphNode{node("x", "a"), node("z", "a")})
	s.Graph.EdgesFrom = []v1alpha1.ItemsFrom{table("edges")}
	_, err = read(s, map[string]string{"edges": "parents,children,outcome\nx,z,Failed\n"})
	require.EqualError(t, err, `spec.graph.edgesFrom[0], row 1: outcome: expected Succeeded or Any, found "Failed"`)
	_, err = read(s, map[string]string{"edges": "parents,children,outcome\nx,z,\nz,x,Any\n"})
	require.ErrorContains(t, err, "no node of a cycle could ever run")
}

func TestSomeOfAStepsNodesMayFail(t *testing.T) {
	may := func(of intstr.IntOrString) func(*v1alpha1.Step) {
		return func(s *v1alpha1.Step) { s.MaxFailures = &of }
	}
	g := made(
		t,
		steps(
			step("a", each(30), may(intstr.FromString("5%"))),
			step("b", each(2), may(intstr.FromInt32(3))),
			step("c"),
		),
	)
	require.Equal(
		t,
		[]int{2, 3, 0},
		[]int{g.Steps[0].MayFail(), g.Steps[1].MayFail(), g.Steps[2].MayFail()},
		"a part is rounded up",
	)
	_, err := New(steps(step("a", may(intstr.FromInt32(3)))))
	require.EqualError(
		t,
		err,
		`spec.steps[0].maxFailures: it is about several jobs, and the step "a" has one in each sequence: add forEach, or write sequences.complete or alwaysSucceed instead`,
	)
	g, err = read(
		listed(steps(step("a", may(intstr.FromString("50%")))), []v1alpha1.GraphNode{node("x", "a"), node("y", "a")}),
		nil,
	)
	require.NoError(t, err)
	require.Equal(t, 1, g.Steps[0].MayFail())
}

func TestWhatAnotherDAGCannotDoIsRefused(t *testing.T) {
	_, err := New(steps(step("a"), step("b", all), step("c", needs("b"), afterEnd("a"))))
	require.ErrorContains(
		t,
		err,
		`spec.steps[2].needs: outcome Any: "c" comes after a step that runs once for all sequences`,
	)
}
