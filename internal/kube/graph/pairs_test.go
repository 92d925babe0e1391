package graph

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// rows gives a step an item for each row of variables in pairs.
func rows(items ...v1alpha1.Item) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) { s.ForEach = &v1alpha1.ForEach{Items: items} }
}

func by(n name, variables ...string) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) { s.Needs = append(s.Needs, v1alpha1.Need{Step: n, By: variables}) }
}

// file is a table with a row for each file and seed.
func file(files, seeds int) (table []string) {
	for f := range files {
		for s := range seeds {
			table = append(table, fmt.Sprintf("FILE=f%d\nSEED=%d\n", f, s))
		}
	}
	return table
}

func TestNodesArePairedByTheVariablesOfTheirItems(t *testing.T) {
	table := rows(v1alpha1.Item{"FILE": "read by Fill"})
	g := made(
		t,
		steps(
			step("gen"),
			step("sim", table),
			step("reco", table, by("sim", "FILE"), pulls("sim", "out"), pulls("gen", "in")),
			step("plot"),
		),
	)
	g.Fill(map[string][]string{"sim": file(2, 2), "reco": file(2, 1)})
	require.NoError(t, g.Check(1))
	require.Equal(t, []int{1, 4, 2, 1}, g.Totals(1))
	nodes := g.Nodes(0, Outcome{Sequences: []int{7}})
	require.Equal(t, []Node{
		{Step: 2, Sequence: 7, Index: 0, Parents: []int{1, 2}, Pulls: [][]int{{1, 2}, {0}}},
		{Step: 2, Sequence: 7, Index: 1, Parents: []int{3, 4}, Pulls: [][]int{{3, 4}, {0}}},
	}, nodes[5:7])
	require.Equal(t, []int{5, 6}, nodes[7].Parents)
	require.Equal(t, "FILE=f1\nSEED=0\n", g.Item(nodes[6]))
	require.Empty(t, g.Item(nodes[0]))
	require.Equal(t, "reco/job_7/1", g.Name(nodes[6]))
	require.True(t, g.Steps[2].Pulls[0].Several)
	require.Equal(
		t,
		[]Node{{Step: 1, Sequence: 7, Index: 2}, {Step: 1, Sequence: 7, Index: 3}},
		g.Sources(nodes[6], g.Steps[2].Pulls[0], nil),
	)
}

func TestNodesArePairedByTheirNumber(t *testing.T) {
	g := made(t, steps(step("a", all, each(3)), step("b", all, each(3), by("a", "HTCPROCID"), pulls("a", "out"))))
	require.NoError(t, g.Check(1))
	require.Equal(
		t,
		Node{Step: 1, Sequence: AllSequences, Index: 2, Parents: []int{2}, Pulls: [][]int{{2}}},
		g.Nodes(0, Outcome{})[5],
	)
	require.False(t, g.Steps[1].Pulls[0].Several, "there is always one")
}

func TestAMistakeInPairsIsNamed(t *testing.T) {
	a, b := rows(v1alpha1.Item{"FILE": "1"}), rows(v1alpha1.Item{"FILE": "1"}, v1alpha1.Item{"FILE": "2"})
	fill := func(s spec) error {
		g, err := New(s)
		if err != nil {
			return err
		}
		items := map[string][]string{}
		for _, step := range s.Steps {
			for _, item := range step.ForEach.Items {
				for name, value := range item {
					items[string(step.Name)] = append(items[string(step.Name)], name+"="+string(value)+"\n")
				}
			}
		}
		g.Fill(items)
		return g.Check(1)
	}
	wrong := step("b", a)
	wrong.Needs = []v1alpha1.Need{{Wrong: `{"stepp":"a"}`}}
	for what, c := range map[string]struct {
		spec  spec
		words string
	}{
		"what is no need": {steps(step("a", a), wrong), `spec.steps[1].needs: expected a step's name, or {step: NAME, by: [VARIABLE], outcome: Any}, found {"stepp":"a"}`},
		"a value that no row has": {steps(step("a", a), step("b", b, by("a", "FILE"))),
			`spec.steps[1].needs: row 2 of the step "b" has FILE=2, and no row of "a" has that: it would need nothing`},
		"a number that no row has": {steps(step("a", a), step("b", b, by("a", "HTCPROCID"))),
			`spec.steps[1].needs: row 2 of the step "b" has HTCPROCID=1, and no row of "a" has that: it would need nothing`},
		"a variable that no row has":   {steps(step("a", a), step("b", b, by("a", "RUN"))), `spec.steps[1].needs: row 1 of the step "a" has no variable RUN, by which jobs are paired`},
		"a step without items":         {steps(step("a", each(2)), step("b", b, by("a", "FILE"))), `spec.steps[1].needs: by: the jobs of the step "a" have no items, and so no FILE: by: [HTCPROCID] pairs jobs of the same number`},
		"a step without forEach":       {steps(step("a"), step("b", b, by("a", "FILE"))), `spec.steps[1].needs: by pairs jobs of forEach, and the step "a" has none: write "a" alone`},
		"steps of different pairing":   {steps(step("a", a), step("b", b, all, by("a", "FILE"))), `spec.steps[1].needs: by pairs jobs of one sequence, and only one of "a" and "b" runs in each sequence: write "a" alone`},
		"a step that is needed twice":  {steps(step("a", a), step("b", a, needs("a"), by("a", "FILE"))), `spec.steps[1].needs: "a" stands there twice`},
		"a variable that stands twice": {steps(step("a", a), step("b", a, by("a", "FILE", "FILE"))), `spec.steps[1].needs: by: FILE stands there twice`},
		"a pull past a pair": {steps(step("a", a), step("b", a, by("a", "FILE")), step("c", a, pulls("a", "x"))),
			`spec.steps[2].pull[0]: not every job of "a" has ended when one of "c" begins, as some of them are paired with by: name it in needs, too`},
	} {
		t.Run(what, func(t *testing.T) { require.EqualError(t, fill(c.spec), c.words) })
	}
}

func TestTheWaysOfPairsAreCounted(t *testing.T) {
	table := rows(v1alpha1.Item{"FILE": "read by Fill"})
	s := steps(step("sim", table), step("reco", table, by("sim", "FILE")))
	g := made(t, s)
	g.Fill(map[string][]string{"sim": file(10, 4_999), "reco": file(10, 1)})
	require.NoError(t, g.Check(1), "a row of reco needs a tenth of the others")
	g = made(t, s)
	g.Fill(map[string][]string{"sim": file(2, 25_000), "reco": file(2, 21)})
	require.ErrorContains(t, g.Check(1), `1050000 of them those of the step "reco"`)
}
