package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// written has the items of a step in a table that another one writes.
func written(by name) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) {
		s.ForEach = &v1alpha1.ForEach{ItemsFrom: &v1alpha1.ItemsFrom{Step: by, Path: "t.csv"}}
	}
}

func TestAStepWhoseItemsAnotherWritesIsOfALaterLevel(t *testing.T) {
	g := made(t, steps(
		step("split", each(2)), step("sim", written("split"), pulls("split", "x")), step("other", needs("split")),
		step("merge", written("split"), by("sim", "HTCPROCID")), step("all", needs("merge", "other")),
	))
	require.Equal(t, [][]int{{0, 2}, {1, 3, 4}}, g.Levels)
	require.Nil(t, g.TableOf(0))
	require.Equal(t, &Table{From: 0, Path: "t.csv"}, g.TableOf(3))
	require.True(t, g.Steps[1].Pulls[0].Earlier)
	require.Equal(t, []Node{{Sequence: 0}, {Sequence: 0, Index: 1}}, g.Writers(1, []int{0}))
	require.NoError(t, g.Check(1), "how many there are is not known yet")
	require.Equal(t, []int{2, 0, 1, 0, 1}, g.Totals(1))
	g.Fill(map[string][]string{"sim": file(2, 2), "merge": file(2, 2)})
	require.NoError(t, g.Check(1))
	nodes := g.Nodes(1, Outcome{Sequences: []int{0}})
	require.Len(t, nodes, 9)
	require.Equal(t, []int{2}, nodes[6].Parents)
}

func TestAStepForAllTakesTheTablesOfAllSequences(t *testing.T) {
	spec := steps(step("probe"), step("job", all, written("probe")))
	spec.Sequences = &v1alpha1.Sequences{Count: new(int32(3))}
	g := made(t, spec)
	require.Equal(t, []Node{{Sequence: 0}, {Sequence: 2}}, g.Writers(1, []int{0, 2}))
	spec = steps(step("probe", all), step("job", written("probe")))
	spec.Sequences = &v1alpha1.Sequences{Count: new(int32(3))}
	g = made(t, spec)
	require.Equal(t, []Node{{Sequence: AllSequences}}, g.Writers(1, []int{0, 2}))
	require.Equal(t, [][]int{{0}, {1}}, g.Levels)
}

func TestATableThatNoStepCanWriteIsRefused(t *testing.T) {
	several := steps(step("a"), step("b", written("a")))
	several.Sequences = &v1alpha1.Sequences{Count: new(int32(2))}
	for words, spec := range map[string]spec{
		`spec.steps[1].forEach.itemsFrom: there is no step "x": the steps are a, b`:                steps(step("a"), step("b", written("x"))),
		`spec.steps[1].forEach.itemsFrom: the step "b" does not come before "b": name it in needs`: steps(step("a"), step("b", written("b"))),
		`spec.steps[1].forEach.itemsFrom: the step "f" does not come before "b": name it in needs`: finally(
			steps(step("a"), step("b", written("f"))), v1alpha1.StepWork{Name: "f"}),
		`spec.steps[1].forEach.itemsFrom: "a" writes a table in each sequence, and the jobs of "b" are the same in all of them: give one of these steps pairing All, or leave out spec.sequences`: several,
	} {
		_, err := New(spec)
		require.EqualError(t, err, words)
	}
}
