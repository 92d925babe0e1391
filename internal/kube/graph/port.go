package graph

import (
	"errors"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// CheckPort returns what to write in place of spec.ports[i], if that names no node of so many sequences.
func (g *Graph) CheckPort(i, sequences int) error {
	if err := g.checkPort(g.spec.Ports[i], sequences); err != nil {
		return fmt.Errorf("spec.ports[%d]: %w", i, err)
	}
	return nil
}

func (g *Graph) checkPort(p v1alpha1.WorkflowPort, sequences int) error {
	switch {
	case p.Node == "" && p.Step == "":
		return errors.New("a port is of a step or, with spec.graph, of a node: add one of them")
	case p.Node == "":
		_, err := g.Find(string(p.Step), int(p.Sequence), int(p.Index), sequences)
		return err
	case p.Step != "" || p.Sequence > 0 || p.Index > 0:
		return errors.New("node names one node: leave out step, sequence and index")
	case !g.Listed():
		return errors.New("without spec.graph nodes have no names: say step, and sequence, in place of node")
	}
	is := func(n v1alpha1.GraphNode) bool { return n.Name == p.Node }
	if len(g.spec.Graph.NodesFrom) == 0 && !slices.ContainsFunc(g.spec.Graph.Nodes, is) {
		return fmt.Errorf("spec.graph.nodes has no node %q", p.Node)
	}
	return nil
}
