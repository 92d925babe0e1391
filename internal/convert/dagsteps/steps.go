// Package dagsteps finds the steps of an HTCWorkflow in the graph of a DAG file: nodes that run the same submit file
// and stand at the same place of the graph are one step, in several sequences or as its jobs side by side.
//
//	a1 ─> b1        a ─> b in 3 sequences        a ─┬─> b1 ─┬─> c        a ─> b x 3 ─> c
//	a2 ─> b2                                        ├─> b2 ─┤
//	a3 ─> b3                                        └─> b3 ─┘
//
// The steps run what the graph runs, in the same order, and what fails keeps the same nodes from running. Nodes that
// are DONE are left out, and what comes after them waits for nothing; nodes with NOOP are left out, and what comes
// after them waits for what is before them.
package dagsteps

import (
	"fmt"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/convert/dagfile"
)

// maxSteps is how many steps an HTCWorkflow may have.
const maxSteps = 50

// Flow is a graph as steps.
type Flow struct {
	// Steps come after those that they need.
	Steps     []Step
	Sequences int
	// Parents has the nodes before each, if the steps do not say what comes before what.
	Parents map[*dagfile.Node][]*dagfile.Node
}

// Step is a step and its nodes.
type Step struct {
	Name  string
	Needs []int
	// Nodes has those of each sequence, which run side by side; there are as many in each.
	Nodes [][]*dagfile.Node
}

// Single says whether each step is one node.
func (f *Flow) Single() bool {
	return f.Sequences == 1 && !slices.ContainsFunc(f.Steps, func(s Step) bool { return len(s.Nodes[0]) > 1 })
}

// graph is what runs: the nodes that are jobs, and for each the ones before and after it, ascending.
type graph struct {
	nodes             []*dagfile.Node
	parents, children [][]int
}

// Few finds as few steps as possible in a DAG.
func Few(d *dagfile.DAG) (*Flow, error) { return of(d, false) }

// Each makes a step of each node.
func Each(d *dagfile.DAG) (*Flow, error) { return of(d, true) }

// List makes a step of all nodes that run the same, wherever they stand in the graph.
func List(d *dagfile.DAG) (*Flow, error) {
	g, err := runs(d)
	if err != nil {
		return nil, err
	}
	f := &Flow{Sequences: 1, Parents: map[*dagfile.Node][]*dagfile.Node{}}
	byClass, taken := map[string]int{}, map[string]bool{}
	for i, n := range g.nodes {
		key := class(n)
		at, known := byClass[key]
		if !known {
			at = len(f.Steps)
			byClass[key] = at
			f.Steps = append(f.Steps, Step{Needs: []int{}, Nodes: [][]*dagfile.Node{nil}})
		}
		f.Steps[at].Nodes[0] = append(f.Steps[at].Nodes[0], n)
		for _, p := range g.parents[i] {
			f.Parents[n] = append(f.Parents[n], g.nodes[p])
		}
	}
	if n := len(f.Steps); n > maxSteps {
		return nil, fmt.Errorf(
			"its nodes run %d different descriptions, and an HTCWorkflow may have %d steps",
			n,
			maxSteps,
		)
	}
	for i := range f.Steps {
		f.Steps[i].Name = name(f.Steps[i].Nodes, taken)
	}
	return f, nil
}

func of(d *dagfile.DAG, each bool) (*Flow, error) {
	g, err := runs(d)
	if err != nil {
		return nil, err
	}
	all := make([]int, len(g.nodes))
	for i := range all {
		all[i] = i
	}
	sequences := [][][]int{} // the steps of each, as nodes
	if !each {
		sequences = g.sequences()
	}
	if len(sequences) < 2 {
		sequences = [][][]int{g.groups(all, each)}
	}
	if n := len(sequences[0]); n > maxSteps {
		return nil, fmt.Errorf("its %d nodes come to %d steps, as too few of them run the same submit file at the "+
			"same place of the graph, and an HTCWorkflow may have %d",
			len(g.nodes), n, maxSteps)
	}
	return g.flow(sequences), nil
}

// runs leaves out what does not run.
func runs(d *dagfile.DAG) (*graph, error) {
	before := make([][]int, len(d.Nodes))
	waits, after := make([]int, len(d.Nodes)), make([][]int, len(d.Nodes))
	for _, e := range d.Edges {
		before[e.Child] = append(before[e.Child], e.Parent)
		after[e.Parent] = append(after[e.Parent], e.Child)
		waits[e.Child]++
	}
	g := &graph{}
	number := make([]int, len(d.Nodes))
	var ready []int
	for i, n := range d.Nodes {
		number[i] = -1
		if n.Kind == dagfile.Job && !n.Noop && !n.Done {
			number[i] = len(g.nodes)
			g.nodes = append(g.nodes, n)
		}
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	g.parents, g.children = make([][]int, len(g.nodes)), make([][]int, len(g.nodes))
	through := make([][]int, len(d.Nodes)) // what stands before those that are left out
	edges := 0
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		for _, c := range after[i] {
			if waits[c]--; waits[c] == 0 {
				ready = append(ready, c)
			}
		}
		var parents []int
		for _, p := range before[i] {
			if number[p] >= 0 {
				parents = append(parents, number[p])
			} else if !d.Nodes[p].Done {
				parents = append(parents, through[p]...)
			}
			if edges+len(parents) > 2_000_000 {
				return nil, fmt.Errorf("without its NOOP nodes there are more than 1,000,000 edges")
			}
		}
		slices.Sort(parents)
		parents = slices.Compact(parents)
		edges += len(parents)
		if number[i] < 0 {
			through[i] = parents
			continue
		}
		g.parents[number[i]] = parents
		for _, p := range parents {
			g.children[p] = append(g.children[p], number[i])
		}
	}
	for i := range g.children {
		slices.Sort(g.children[i])
	}
	return g, nil
}

// class is what nodes of one step have in common.
func class(n *dagfile.Node) string {
	var vars []string
	for _, v := range n.Vars {
		vars = append(vars, fmt.Sprint(strings.ToLower(v.Name), v.Append))
	}
	slices.Sort(vars)
	var abort [2]int
	if n.Abort != nil && !n.Apart() {
		abort = [2]int{n.Abort.Code, n.Abort.Return}
	}
	return fmt.Sprintf(
		"%q %q %p %d %d %d %v %q %q %q %q",
		n.Submit,
		n.Dir,
		n.Description,
		n.Retries,
		n.UnlessExit,
		abort,
		n.Priority,
		n.Category,
		vars,
		words(n.Pre),
		words(n.Post),
	)
}

func words(s *dagfile.Script) []string {
	switch {
	case s == nil:
		return nil
	case s.Deferred:
		return append([]string{"DEFER"}, s.Words...)
	}
	return s.Words
}

// groups are nodes of one class with the same nodes before and after them, each step's together, in the order of the
// graph.
func (g *graph) groups(nodes []int, each bool) [][]int {
	byKey, groups := map[string]int{}, [][]int{}
	for _, i := range nodes {
		key := fmt.Sprint(class(g.nodes[i]), g.parents[i], g.children[i])
		if each {
			key = fmt.Sprint(i)
		}
		at, known := byKey[key]
		if !known {
			at = len(groups)
			byKey[key] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return g.ordered(groups)
}

// ordered puts groups after those that they need, and otherwise leaves them in the order of their nodes.
func (g *graph) ordered(groups [][]int) [][]int {
	of := g.index(groups)
	done, out := make([]bool, len(groups)), make([][]int, 0, len(groups))
	var visit func(i int)
	visit = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, p := range g.parents[groups[i][0]] {
			visit(of[p])
		}
		out = append(out, groups[i])
	}
	for i := range groups {
		visit(i)
	}
	return out
}

// index says to which group a node belongs.
func (g *graph) index(groups [][]int) map[int]int {
	of := map[int]int{}
	for i, group := range groups {
		for _, n := range group {
			of[n] = i
		}
	}
	return of
}

// sequences are the parts of the graph that no edge joins, as the steps of each, if they are all alike.
func (g *graph) sequences() [][][]int {
	var sequences [][][]int
	want := ""
	for _, part := range g.parts() {
		steps := g.groups(part, false)
		shape, same := g.shape(steps)
		if !same || want != "" && shape != want {
			return nil
		}
		want = shape
		sequences = append(sequences, steps)
	}
	return sequences
}

// shape describes a part by its classes, and puts its steps into their order; of each class there may be one.
func (g *graph) shape(steps [][]int) (string, bool) {
	slices.SortStableFunc(steps, func(a, b []int) int {
		return strings.Compare(class(g.nodes[a[0]]),
			class(g.nodes[b[0]]))
	})
	of := g.index(steps)
	var b strings.Builder
	for i, s := range steps {
		key := class(g.nodes[s[0]])
		if i > 0 && key == class(g.nodes[steps[i-1][0]]) {
			return "", false
		}
		fmt.Fprintf(&b, "%s x %d after %v\n", key, len(s), g.needs(s, of))
	}
	return b.String(), true
}

// needs are the groups before one.
func (g *graph) needs(group []int, of map[int]int) []int {
	needs := []int{}
	for _, p := range g.parents[group[0]] {
		needs = append(needs, of[p])
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}

// parts are the nodes that edges join, in the order of their first ones.
func (g *graph) parts() [][]int {
	seen, parts := make([]bool, len(g.nodes)), [][]int{}
	for i := range g.nodes {
		if seen[i] {
			continue
		}
		seen[i] = true
		part := []int{i}
		for next := 0; next < len(part); next++ {
			for _, others := range [][]int{g.parents[part[next]], g.children[part[next]]} {
				for _, o := range others {
					if !seen[o] {
						seen[o] = true
						part = append(part, o)
					}
				}
			}
		}
		slices.Sort(part)
		parts = append(parts, part)
	}
	return parts
}

// flow makes the steps of sequences that are alike.
func (g *graph) flow(sequences [][][]int) *Flow {
	f := &Flow{Sequences: len(sequences)}
	first := sequences[0]
	order := make([]int, 0, len(first)) // of the steps, in the order of the graph
	of := g.index(first)
	for _, group := range g.ordered(inOrder(first)) {
		order = append(order, of[group[0]])
	}
	place := make([]int, len(first))
	for i, k := range order {
		place[k] = i
	}
	taken := map[string]bool{}
	for _, k := range order {
		s := Step{Needs: []int{}}
		for _, need := range g.needs(first[k], of) {
			s.Needs = append(s.Needs, place[need])
		}
		slices.Sort(s.Needs)
		for _, sequence := range sequences {
			var nodes []*dagfile.Node
			for _, n := range sequence[k] {
				nodes = append(nodes, g.nodes[n])
			}
			s.Nodes = append(s.Nodes, nodes)
		}
		s.Name = name(s.Nodes, taken)
		f.Steps = append(f.Steps, s)
	}
	return f
}

// inOrder are groups in the order of their first nodes.
func inOrder(groups [][]int) [][]int {
	groups = slices.Clone(groups)
	slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	return groups
}
