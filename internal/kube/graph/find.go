package graph

import (
	"fmt"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Find returns the node that a step, a sequence and an index name, where there are so many sequences; 0: a table says
// how many. Of a step that runs once for all, the sequence is 0 or AllSequences.
func (g *Graph) Find(step string, sequence, index, sequences int) (Node, error) {
	i := slices.IndexFunc(g.Steps, func(s Step) bool { return string(s.Name) == step })
	if i < 0 {
		return Node{}, g.unknown(v1alpha1.StepName(step))
	}
	s := g.Steps[i]
	switch {
	case s.All && sequence > 0:
		return Node{}, fmt.Errorf("the step %s runs once for all sequences: leave sequence out", step)
	case !s.All && sequence < 0:
		return Node{}, fmt.Errorf("the step %s runs in each sequence: say in which", step)
	case !s.All && sequences > 0 && sequence >= sequences:
		return Node{}, fmt.Errorf("there is no sequence %d: they are numbered 0 to %d", sequence, sequences-1)
	case s.Each > 0 && index >= s.Each && !g.tabled(s): // otherwise a table says it
		return Node{}, fmt.Errorf("the step %s has no job %d: they are numbered 0 to %d", step, index, s.Each-1)
	}
	if s.All {
		sequence = AllSequences
	}
	return Node{Step: i, Sequence: sequence, Index: index}, nil
}

// tabled reports whether a step may have more nodes than the spec itself lists.
func (g *Graph) tabled(s Step) bool { return g.Listed() && !s.Final && len(g.spec.Graph.NodesFrom) > 0 }
