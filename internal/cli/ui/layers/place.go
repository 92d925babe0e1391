package layers

import (
	"cmp"
	"math"
	"slices"
)

// Spot is a place: the number of a column, and the height in it, in nodes from the top.
type Spot struct {
	Column int
	Y      float64
}

// Line is a part of an edge from one column to the next. Children are those that it leads to.
type Line struct {
	From, To Spot
	Parent   int
	Children []int
	Passes   bool // it goes on to the right of To
}

// passing is how much room an edge takes that passes a column, in nodes.
const passing = 0.4

// item is a node, or an edge that passes a column.
type item struct {
	height        float64
	at            Spot
	before, after []int
}

// A graph is what is placed: the nodes, then what passes columns.
type graph struct {
	items   []item
	columns [][]int // from top to bottom
	lines   []line
}

type line struct {
	from, to int // items
	Line
}

// Place places the nodes of a graph without cycles; parents has, for each node, those that come before it.
func Place(parents [][]int) ([]Spot, []Line) {
	children := childrenOf(parents)
	g := build(columns(parents, children), children)
	g.order()
	g.settle()
	loose := 0
	spots := make([]Spot, len(parents))
	lowest := 0.0
	for i := range parents {
		if len(g.items[i].before)+len(g.items[i].after) > 0 {
			lowest = max(lowest, g.items[i].at.Y+1)
		}
	}
	for i := range parents {
		spots[i] = g.items[i].at
		if len(g.items[i].before)+len(g.items[i].after) == 0 { // in rows below the others
			across := max(len(g.columns), 8)
			spots[i] = Spot{loose % across, lowest + float64(loose/across)}
			loose++
		}
	}
	lines := make([]Line, len(g.lines))
	for i, l := range g.lines {
		l.From, l.To = g.items[l.from].at, g.items[l.to].at
		lines[i] = l.Line
	}
	return spots, lines
}

// childrenOf returns what comes after each.
func childrenOf(parents [][]int) [][]int {
	children := make([][]int, len(parents))
	for i, before := range parents {
		for _, p := range before {
			children[p] = append(children[p], i)
		}
	}
	return children
}

// columns are as far to the left as what comes before allows, and for what nothing comes before, next to what comes
// after.
func columns(parents, children [][]int) []int {
	column, waits := make([]int, len(parents)), make([]int, len(parents))
	var ready []int
	for i, before := range parents {
		if waits[i] = len(before); waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		for _, c := range children[i] {
			column[c] = max(column[c], column[i]+1)
			if waits[c]--; waits[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	for i, before := range parents {
		if len(before) == 0 && len(children[i]) > 0 {
			column[i] = math.MaxInt
			for _, c := range children[i] {
				column[i] = min(column[i], column[c]-1)
			}
		}
	}
	return column
}

// build adds what passes columns: one item for all edges of a parent.
func build(column []int, children [][]int) *graph {
	g := &graph{items: make([]item, len(column))}
	for i := range g.items {
		g.items[i] = item{height: 1, at: Spot{Column: column[i]}}
	}
	for p, all := range children {
		slices.SortStableFunc(all, func(a, b int) int { return column[a] - column[b] })
		last := p
		for c := column[p] + 1; len(all) > 0; c++ {
			for ; len(all) > 0 && column[all[0]] == c; all = all[1:] {
				g.join(last, all[0], Line{Parent: p, Children: all[:1]})
			}
			if len(all) > 0 {
				g.items = append(g.items, item{height: passing, at: Spot{Column: c}})
				g.join(last, len(g.items)-1, Line{Parent: p, Children: all, Passes: true})
				last = len(g.items) - 1
			}
		}
	}
	for i, it := range g.items {
		for len(g.columns) <= it.at.Column {
			g.columns = append(g.columns, nil)
		}
		if len(it.before)+len(it.after) > 0 {
			g.columns[it.at.Column] = append(g.columns[it.at.Column], i)
		}
	}
	return g
}

func (g *graph) join(from, to int, l Line) {
	g.items[from].after = append(g.items[from].after, to)
	g.items[to].before = append(g.items[to].before, from)
	g.lines = append(g.lines, line{from, to, l})
}

// sweeps is how often all columns are looked at. More of them change little.
const sweeps = 24

// order finds the order in the columns.
func (g *graph) order() {
	best, fewest := g.copied(), math.MaxInt
	for sweep := range sweeps {
		position := g.positions()
		for c := range g.columns {
			next := func(i int) []int { return g.items[i].before }
			if sweep%2 == 1 {
				c, next = len(g.columns)-1-c, func(i int) []int { return g.items[i].after }
			}
			means := map[int]float64{}
			for _, i := range g.columns[c] {
				means[i] = mean(next(i), position, position[i])
			}
			slices.SortStableFunc(g.columns[c], func(a, b int) int { return cmp.Compare(means[a], means[b]) })
			for k, i := range g.columns[c] {
				position[i] = float64(k)
			}
		}
		if n := g.crossings(); n < fewest {
			best, fewest = g.copied(), n
		}
	}
	g.columns = best
	g.exchange()
}

func (g *graph) copied() [][]int {
	out := make([][]int, len(g.columns))
	for c, column := range g.columns {
		out[c] = slices.Clone(column)
	}
	return out
}

func (g *graph) positions() []float64 {
	position := make([]float64, len(g.items))
	for _, column := range g.columns {
		for k, i := range column {
			position[i] = float64(k)
		}
	}
	return position
}

func mean(items []int, of []float64, otherwise float64) float64 {
	if len(items) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, i := range items {
		sum += of[i]
	}
	return sum / float64(len(items))
}

// exchange swaps neighbours in a column as long as fewer edges cross then.
func (g *graph) exchange() {
	position := g.positions()
	for range sweeps {
		better := false
		for _, column := range g.columns {
			for k := 1; k < len(column); k++ {
				a, b := column[k-1], column[k]
				now := between(g.items[a].before, g.items[b].before, position) +
					between(g.items[a].after, g.items[b].after, position)
				swapped := between(g.items[b].before, g.items[a].before, position) +
					between(g.items[b].after, g.items[a].after, position)
				if swapped < now {
					column[k-1], column[k] = b, a
					position[a], position[b] = position[b], position[a]
					better = true
				}
			}
		}
		if !better {
			return
		}
	}
}

// between counts how many edges of an item cross those of the one below it.
func between(upper, lower []int, position []float64) int {
	n := 0
	for _, a := range upper {
		for _, b := range lower {
			if position[a] > position[b] {
				n++
			}
		}
	}
	return n
}

// crossings counts the pairs of lines that cross.
func (g *graph) crossings() int {
	position, n := g.positions(), 0
	for _, column := range g.columns {
		var ends []int // of the lines to the next column, from top to bottom
		widest := 0
		for _, i := range column {
			after := slices.Clone(g.items[i].after)
			slices.SortFunc(after, func(a, b int) int { return cmp.Compare(position[a], position[b]) })
			for _, to := range after {
				ends = append(ends, int(position[to]))
				widest = max(widest, int(position[to])+1)
			}
		}
		below := make([]int, widest+1) // a Fenwick tree: how many of those so far end above
		for k, end := range ends {
			n += k
			for i := end + 1; i > 0; i -= i & -i {
				n -= below[i]
			}
			for i := end + 1; i <= widest; i += i & -i {
				below[i]++
			}
		}
	}
	return n
}

// settle gives each item its height: as near to its neighbours as the order in its column allows.
func (g *graph) settle() {
	y := make([]float64, len(g.items))
	for _, column := range g.columns {
		g.near(column, y, func(int) []int { return nil })
	}
	for sweep := range sweeps {
		for c := range g.columns {
			switch sweep % 3 {
			case 0:
				g.near(g.columns[c], y, func(i int) []int { return g.items[i].before })
			case 1:
				g.near(g.columns[len(g.columns)-1-c], y, func(i int) []int { return g.items[i].after })
			default:
				g.near(g.columns[c], y, func(i int) []int { return slices.Concat(g.items[i].before, g.items[i].after) })
			}
		}
	}
	top := math.Inf(1)
	for _, column := range g.columns {
		for _, i := range column {
			top = min(top, y[i])
		}
	}
	for i := range g.items {
		g.items[i].at.Y = y[i] - top
	}
}

// block is some items of a column that move together.
type block struct {
	first, n int
	sum      float64 // of where each would be alone, as an offset of the first
}

func (b block) mean() float64 { return b.sum / float64(b.n) }

// near moves the items of a column to the means of their neighbours, in their order and without overlap, so that the
// squares of the distances are least: where several would be too near to each other, they move together.
func (g *graph) near(column []int, y []float64, neighbours func(int) []int) {
	offset := make([]float64, len(column)) // of an item below the first one, all being as near as can be
	var blocks []block
	for k, i := range column {
		if k > 0 {
			offset[k] = offset[k-1] + (g.items[column[k-1]].height+g.items[i].height)/2
		}
		blocks = append(blocks, block{k, 1, mean(neighbours(i), y, y[i]) - offset[k]})
		for n := len(blocks) - 1; n > 0 && blocks[n-1].mean() > blocks[n].mean(); n-- {
			blocks[n-1].n += blocks[n].n
			blocks[n-1].sum += blocks[n].sum
			blocks = blocks[:n]
		}
	}
	for _, b := range blocks {
		for k := b.first; k < b.first+b.n; k++ {
			y[column[k]] = b.mean() + offset[k]
		}
	}
}
