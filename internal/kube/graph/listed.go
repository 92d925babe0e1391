package graph

import (
	"fmt"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Listed reports whether the graph is that of spec.graph, whose nodes have names of their own.
func (g *Graph) Listed() bool { return g.spec.Graph != nil }

// list puts all steps into one level: nodes say themselves what they need.
func (g *Graph) list() error {
	if g.spec.Sequences != nil {
		return fmt.Errorf("spec.sequences: spec.graph says how often each step runs: leave one of them out")
	}
	for i, s := range g.spec.Steps {
		if s.Needs != nil || s.ForEach != nil || s.Pairing != "" {
			return fmt.Errorf(
				"spec.steps[%d]: spec.graph says what comes before which: leave out needs, forEach and pairing",
				i,
			)
		}
		g.Steps[i].Each = 0
	}
	for i, r := range g.spec.Rules {
		if r.Action != v1alpha1.ActionFinish {
			return fmt.Errorf(
				"spec.rules[%d]: %s is about sequences, and with spec.graph there are none: leave it out",
				i,
				r.Action,
			)
		}
	}
	for _, n := range g.spec.Graph.Nodes { // those of tables are counted when they are read
		for i := range g.spec.Steps {
			if g.Steps[i].Name == n.Step {
				g.Steps[i].Each++
			}
		}
	}
	g.level(span(0, len(g.spec.Steps)))
	return nil
}

// fillListed takes the names of the nodes from their rows.
func (g *Graph) fillListed() {
	for i := range g.Steps {
		s := &g.Steps[i]
		s.names, s.priorities = make([]string, len(s.items)), make([]*int, len(s.items))
		for index, row := range s.items {
			var priority string
			s.names[index], priority, s.items[index] = cutRow(row)
			s.priorities[index], _ = priorityOf(priority) // Read has checked it
		}
	}
}

// Unprioritized returns the row of a node without its priority: its name and its variables.
func Unprioritized(row string) string {
	name, _, variables := cutRow(row)
	return name + "\n" + variables
}

func cutRow(row string) (name, priority, variables string) {
	line, variables, _ := strings.Cut(row, "\n")
	name, priority, _ = strings.Cut(strings.TrimPrefix(line, variableName), " ")
	return name, priority, variables
}

// link finds the parents of each node, by their numbers in the DAG.
func (g *Graph) link() error {
	number, names := map[string]int{}, []string{}
	for i, s := range g.Steps {
		if !s.Final && s.Each == 0 {
			return fmt.Errorf(
				"spec.steps[%d]: spec.graph has no node of the step %q: leave the step out, or add one",
				i,
				s.Name,
			)
		}
		for _, name := range s.names {
			number[name] = len(names)
			names = append(names, name)
		}
	}
	g.parents, g.loose = make([][]int, len(names)), make([][]int, len(names))
	links := 0
	for _, row := range g.edges {
		values, _ := take(row, columnParents, columnChildren, columnOutcome)
		to := g.parents
		if values[columnOutcome] == string(v1alpha1.OutcomeAny) {
			to = g.loose
		}
		before, after := strings.Fields(values[columnParents]), strings.Fields(values[columnChildren])
		if links += len(before) * len(after); links > MostLinks {
			return fmt.Errorf(
				"spec.graph: the nodes depend on each other in more than %d ways, which is what a workflow may have: let a node between them gather what is before it",
				MostLinks,
			)
		}
		for _, child := range after {
			for _, parent := range before {
				if parent == child {
					return fmt.Errorf("spec.graph: the node %s comes before itself", child)
				}
				to[number[child]] = append(to[number[child]], number[parent])
			}
		}
	}
	before := make([][]int, len(names))
	for i := range g.parents {
		g.parents[i], g.loose[i] = sorted(g.parents[i]), sorted(g.loose[i])
		if before[i] = g.parents[i]; len(g.loose[i]) > 0 {
			// An edge that asks for a success asks for more.
			g.loose[i] = slices.DeleteFunc(
				g.loose[i],
				func(p int) bool { _, strict := slices.BinarySearch(g.parents[i], p); return strict },
			)
			before[i] = slices.Concat(g.parents[i], g.loose[i])
		}
	}
	return acyclic(names, before)
}

// sorted returns numbers in their order, each once.
func sorted(numbers []int) []int {
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// acyclic refuses a cycle, and names it.
func acyclic(names []string, before [][]int) error {
	waits, children := make([]int, len(names)), make([][]int, len(names))
	var ready []int
	for i, parents := range before {
		if waits[i] = len(parents); waits[i] == 0 {
			ready = append(ready, i)
		}
		for _, p := range parents {
			children[p] = append(children[p], i)
		}
	}
	left := len(names)
	for ; len(ready) > 0; left-- {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, child := range children[i] {
			if waits[child]--; waits[child] == 0 {
				ready = append(ready, child)
			}
		}
	}
	if left == 0 {
		return nil
	}
	// From a node that waits one comes to another, and so to one that was there before.
	var path []int
	at, seen := slices.IndexFunc(waits, func(n int) bool { return n > 0 }), map[int]int{}
	for {
		if from, again := seen[at]; again {
			path = path[from:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		parents := before[at]
		at = parents[slices.IndexFunc(parents, func(p int) bool { return waits[p] > 0 })]
	}
	var words []string
	for _, i := range path[:min(len(path), 10)] {
		words = append(words, names[i])
	}
	if len(path) > len(words) {
		words = append(words, fmt.Sprintf("%d others", len(path)-len(words)))
	}
	return fmt.Errorf(
		"spec.graph: no node of a cycle could ever run: %s, which needs %s",
		strings.Join(words, ", which needs "),
		words[0],
	)
}

// listed returns the nodes of spec.graph.
func (g *Graph) listed() (nodes []Node) {
	var stepOf []int
	for i, s := range g.Steps {
		for range s.names {
			stepOf = append(stepOf, i)
		}
	}
	for i, s := range g.Steps {
		for index, name := range s.names {
			n := Node{Step: i, Index: index, Name: name, Parents: g.parents[len(nodes)], Ended: g.loose[len(nodes)]}
			for _, p := range s.Pulls {
				var from []int
				for _, parents := range [][]int{n.Parents, n.Ended} {
					for _, parent := range parents {
						if stepOf[parent] == p.From {
							from = append(from, parent)
						}
					}
				}
				n.Pulls = append(n.Pulls, from)
			}
			nodes = append(nodes, n)
		}
	}
	return nodes
}
