package graph

import (
	"fmt"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Table is where the items of a step are that another one writes. It is read when all of that one has ended, so the
// step is of a later level.
type Table struct {
	From  int // number of the step that writes it
	Path  string
	Spare bool // a job of that step may have left none: it may fail
}

// TableOf returns that of a step; nil: none before it writes its items.
func (g *Graph) TableOf(i int) *Table { return g.Steps[i].table }

// writtenBy returns the table of a step's items if another step writes it, else nil.
func writtenBy(s v1alpha1.Step) *v1alpha1.ItemsFrom {
	if s.ForEach == nil || s.ForEach.ItemsFrom == nil || s.ForEach.ItemsFrom.Step == "" {
		return nil
	}
	return s.ForEach.ItemsFrom
}

// made sets which steps get their items from tables of others.
func (g *Graph) made(number map[v1alpha1.StepName]int) error {
	for i, s := range g.spec.Steps {
		from, where := writtenBy(s), fmt.Sprintf("spec.steps[%d].forEach.itemsFrom", i)
		if from == nil {
			continue
		}
		k, known := number[from.Step]
		switch {
		case !known:
			return fmt.Errorf("%s: %w", where, g.unknown(from.Step))
		case !g.before(i)[k]:
			return fmt.Errorf("%s: the step %q does not come before %q: name it in needs", where, from.Step, s.Name)
		case g.spec.Sequences != nil && !g.Steps[i].All && !g.Steps[k].All:
			return fmt.Errorf(
				"%s: %q writes a table in each sequence, and the jobs of %q are the same in all of them: "+
					"give one of these steps pairing All, or leave out spec.sequences",
				where,
				from.Step,
				s.Name,
			)
		}
		g.Steps[i].table = &Table{
			From: k,
			Path: from.Path,
			Spare: g.Steps[i].loose[k] || g.Steps[k].maxFailures != nil ||
				slices.Contains(g.spec.AlwaysSucceed, from.Step),
		}
	}
	return nil
}

// Writers returns the nodes that write the table of a step; sequences are those that go on.
func (g *Graph) Writers(i int, sequences []int) (nodes []Node) {
	from := g.Steps[i].table.From
	if g.Steps[from].All {
		sequences = []int{AllSequences}
	}
	for _, sequence := range sequences {
		for index := range g.Steps[from].Each {
			nodes = append(nodes, Node{Step: from, Sequence: sequence, Index: index})
		}
	}
	return nodes
}
