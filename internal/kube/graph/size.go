package graph

import (
	"fmt"
	"slices"
)

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

// Check refuses what would be too much, with so many sequences, and pairs nodes.
func (g *Graph) Check(sequences int) error {
	totals := g.Totals(sequences)
	nodes, most := 0, 0
	for i, n := range totals {
		if nodes += n; n > totals[most] {
			most = i
		}
	}
	switch {
	case nodes > MostNodes && g.Listed():
		return fmt.Errorf(
			"spec.graph: there are %d nodes, and a workflow may have %d: make it several HTCWorkflows",
			nodes,
			MostNodes,
		)
	case nodes > MostNodes:
		return fmt.Errorf(
			"spec.sequences: with %d sequences there are %d nodes, %d of them those of the step %q, and a workflow may have %d: make it several HTCWorkflows",
			sequences,
			nodes,
			totals[most],
			g.Steps[most].Name,
			MostNodes,
		)
	}
	if g.Listed() {
		if !g.filled {
			return nil
		}
		return g.link()
	}
	if err := g.pair(); err != nil {
		return err
	}
	links, most, dense := 0, 0, 0
	for i, s := range g.Steps {
		of := 0
		for _, k := range s.Needs {
			of += g.linked(i, k, totals[i], sequences)
		}
		for _, p := range s.Pulls {
			of += g.linked(i, p.From, totals[i], sequences)
		}
		links += of
		if of > most {
			most, dense = of, i
		}
	}
	if links > MostLinks {
		return fmt.Errorf(
			"the nodes depend on each other in %d ways, %d of them those of the step %q, and a workflow may have %d: let a step with pairing All, or one without forEach, gather what is before it",
			links,
			most,
			g.Steps[dense].Name,
			MostLinks,
		)
	}
	return nil
}

// linked is how many nodes of step k those of step i, so many, need.
func (g *Graph) linked(i, k, total, sequences int) int {
	switch pairs := g.Steps[i].pairs[k]; {
	case pairs != nil:
		n := 0
		for _, each := range pairs {
			n += len(each)
		}
		return n * (total / max(1, g.Steps[i].Each))
	case g.Steps[i].All && !g.Steps[k].All:
		return total * g.Steps[k].Each * sequences
	}
	return total * g.Steps[k].Each
}

// SeveralNodes reports whether a job of any step runs on several machines.
func (g *Graph) SeveralNodes() bool {
	return slices.ContainsFunc(g.Steps, func(s Step) bool { return s.Job.Nodes != nil })
}
