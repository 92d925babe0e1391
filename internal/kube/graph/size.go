package graph

import "fmt"

// Most of what one workflow may be. DAGMan keeps every node and every dependency in memory on the schedd's host.
const (
	MostNodes = 100_000
	MostLinks = 1_000_000 // from a node to one that it needs or pulls from
)

// Totals returns how many nodes each step has, with so many sequences.
func (g *Graph) Totals(sequences int) []int {
	totals := make([]int, len(g.Steps))
	for i, s := range g.Steps {
		totals[i] = s.Each
		if !s.All {
			totals[i] *= sequences
		}
	}
	return totals
}

// PerSequence is how many nodes each sequence has.
func (g *Graph) PerSequence() (n int) {
	for _, s := range g.Steps {
		if !s.All {
			n += s.Each
		}
	}
	return n
}

// Check refuses what would be too much, with so many sequences.
func (g *Graph) Check(sequences int) error {
	totals := g.Totals(sequences)
	nodes, links, most, dense := 0, 0, 0, 0
	for i, s := range g.Steps {
		each := 0
		for _, k := range s.Needs {
			each += g.linked(s, k, sequences)
		}
		for _, p := range s.Pulls {
			each += g.linked(s, p.From, sequences)
		}
		nodes += totals[i]
		links += totals[i] * each
		if totals[i]*each > most {
			most, dense = totals[i]*each, i
		}
	}
	switch {
	case nodes > MostNodes:
		return fmt.Errorf("spec.sequences: with %d sequences there are %d nodes, and a workflow may have %d: make it several HTCWorkflows", sequences, nodes, MostNodes)
	case links > MostLinks:
		return fmt.Errorf("the nodes depend on each other in %d ways, %d of them those of the step %q, and a workflow may have %d: let a step with pairing All, or one without forEach, gather what is before it",
			links, most, g.Steps[dense].Name, MostLinks)
	}
	return nil
}

// linked is how many nodes of step k one node of a step needs.
func (g *Graph) linked(s Step, k, sequences int) int {
	if s.All && !g.Steps[k].All {
		return g.Steps[k].Each * sequences
	}
	return g.Steps[k].Each
}
