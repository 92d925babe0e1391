package graph

import (
	"slices"
	"strconv"
	"strings"
)

// AllSequences is the Sequence of a node of a step that runs once for all sequences.
const AllSequences = -1

// Node is one job of a step.
type Node struct {
	Step     int    // number in Graph.Steps
	Sequence int    // from 0, or AllSequences
	Index    int    // within forEach, from 0, or among the step's nodes of spec.graph
	Name     string // in spec.graph; empty: it is of a sequence, or for all
	Parents  []int  // nodes of the same DAG that must have succeeded before; shared between nodes
	Ended    []int  // those that must only have ended before, or be futile; shared between nodes
	// for each of the step's pulls, the nodes of the same DAG that it pulls from, none where it is Earlier; shared
	// between nodes
	Pulls [][]int
}

// Outcome is what became of the levels before. With the first level it says which sequences there are.
type Outcome struct {
	Sequences []int // those of which no node has failed and none is futile, ascending
	Failed    []int // steps for all sequences of which a node has failed or is futile
}

// Nodes returns the nodes of a level's DAG: sequence by sequence, and then those for all. What cannot run after such an
// outcome is left out.
func (g *Graph) Nodes(level int, o Outcome) []Node {
	if g.Listed() && !g.Steps[g.Levels[level][0]].Final {
		return g.listed()
	}
	b := builder{Graph: g, all: map[int][]int{}}
	futile := g.FutileSteps(o)
	var each, once []int
	for _, i := range g.Levels[level] {
		switch {
		case futile[i]:
		case g.Steps[i].All:
			once = append(once, i)
		default:
			each = append(each, i)
		}
	}
	// The nodes for all are numbered last, but others may come after them.
	next := len(o.Sequences) * g.eachOf(each)
	for _, i := range once {
		b.all[i] = span(next, g.Steps[i].Each)
		next += g.Steps[i].Each
	}
	for _, sequence := range o.Sequences {
		own := map[int][]int{}
		for _, i := range each {
			own[i] = span(len(b.nodes), g.Steps[i].Each)
			b.add(i, sequence, own)
		}
	}
	for _, i := range once {
		b.add(i, AllSequences, nil)
	}
	return b.nodes
}

// Variables returns those of a node: of its item, of its sequence's if there are such, which the item's override, and
// jobid.
func (g *Graph) Variables(n Node, sequences []string) string {
	item := g.Item(n)
	if n.Sequence != AllSequences && n.Sequence < len(sequences) {
		item = besides(sequences[n.Sequence], item) + item
	}
	return item + "jobid=" + g.JobID(n) + "\n"
}

// besides returns the lines of variables that others do not override.
func besides(lines, others string) string {
	if others == "" {
		return lines
	}
	var left strings.Builder
	for line := range strings.Lines(lines) {
		if name, _, _ := strings.Cut(line, "="); !strings.Contains("\n"+others, "\n"+name+"=") {
			left.WriteString(line)
		}
	}
	return left.String()
}

// FutileSteps returns which steps can no longer run: a step for all that they need has failed, or no sequence is left.
func (g *Graph) FutileSteps(o Outcome) []bool {
	futile := make([]bool, len(g.Steps))
	for _, level := range g.Levels {
		for _, i := range level { // each after those that it needs
			s := g.Steps[i]
			futile[i] = slices.ContainsFunc(s.Needs, func(k int) bool {
				return !s.loose[k] &&
					(futile[k] || slices.Contains(o.Failed, k) || s.All && !g.Steps[k].All && len(o.Sequences) == 0)
			})
		}
	}
	return futile
}

// eachOf is how many nodes these steps have in one sequence.
func (g *Graph) eachOf(steps []int) (n int) {
	for _, i := range steps {
		n += g.Steps[i].Each
	}
	return n
}

// span returns n numbers.
func span(from, n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = from + i
	}
	return numbers
}

// builder appends nodes.
type builder struct {
	*Graph
	all   map[int][]int // the nodes of steps for all sequences
	nodes []Node
}

// add appends the nodes of a step; own are those of the same sequence, by their steps.
func (b *builder) add(i, sequence int, own map[int][]int) {
	s := b.Steps[i]
	of := func(k int) []int {
		if b.Steps[k].All {
			return b.all[k]
		}
		return own[k]
	}
	var parents, ended []int
	for _, k := range s.Needs { // none if that step is of an earlier level
		switch {
		case s.pairs[k] != nil:
		case s.loose[k]:
			ended = append(ended, of(k)...)
		default:
			parents = append(parents, of(k)...)
		}
	}
	var pulls [][]int
	for _, p := range s.Pulls {
		pulls = append(pulls, of(p.From))
	}
	for index := range s.Each {
		n := Node{Step: i, Sequence: sequence, Index: index, Parents: parents, Ended: ended, Pulls: pulls}
		if len(s.pairs) > 0 {
			b.pair(&n, of)
		}
		b.nodes = append(b.nodes, n)
	}
}

// pair adds what a node alone needs.
func (b *builder) pair(n *Node, of func(step int) []int) {
	s := b.Steps[n.Step]
	paired := func(k int) (nodes []int) {
		if all := of(k); len(all) > 0 {
			for _, index := range s.pairs[k][n.Index] {
				nodes = append(nodes, all[index])
			}
		}
		return nodes
	}
	n.Parents, n.Ended, n.Pulls = slices.Clip(n.Parents), slices.Clip(n.Ended), slices.Clone(n.Pulls)
	for _, k := range s.Needs {
		switch {
		case s.pairs[k] == nil:
		case s.loose[k]:
			n.Ended = append(n.Ended, paired(k)...)
		default:
			n.Parents = append(n.Parents, paired(k)...)
		}
	}
	for i, p := range s.Pulls {
		if s.pairs[p.From] != nil {
			n.Pulls[i] = paired(p.From)
		}
	}
}

// Sources returns the nodes that a node gets a pull from which is Earlier; sequences are those of the DAG it is in.
func (g *Graph) Sources(n Node, p Pull, sequences []int) []Node {
	from := g.Steps[p.From]
	of := []int{n.Sequence}
	switch {
	case from.All:
		of = []int{AllSequences}
	case n.Sequence == AllSequences:
		of = sequences
	}
	indexes := span(0, from.Each)
	if pairs := g.Steps[n.Step].pairs[p.From]; pairs != nil {
		indexes = pairs[n.Index]
	}
	var sources []Node
	for _, sequence := range of {
		for _, index := range indexes {
			sources = append(sources, Node{Step: p.From, Sequence: sequence, Index: index, Name: from.nameOf(index)})
		}
	}
	return sources
}

// Place is where the files of a node lie in one that pulls from several: JOBID, or JOBID/INDEX with forEach.
func (g *Graph) Place(n Node) string {
	place := g.JobID(n)
	if g.Steps[n.Step].Indexed {
		place += "/" + strconv.Itoa(n.Index)
	}
	return place
}

// JobID is the node's variable jobid: its own name, the name of its sequence, or "all".
func (g *Graph) JobID(n Node) string {
	switch {
	case n.Name != "":
		return n.Name
	case n.Sequence == AllSequences:
		return "all"
	}
	return g.spec.SequenceName(n.Sequence)
}

// Name is what a node is called: STEP/PLACE.
func (g *Graph) Name(n Node) string { return string(g.Steps[n.Step].Name) + "/" + g.Place(n) }
