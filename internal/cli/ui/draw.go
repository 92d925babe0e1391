package ui

import (
	"fmt"
	"math"
	"unicode/utf8"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// drawing is the graph of a workflow's steps: each to the right of those that it needs.
type drawing struct {
	Width, Height int
	Boxes         []box
	Lines         []string // paths of SVG
}

// box is a step.
type box struct {
	X, Y   int
	Name   string
	Label  string // the name, as far as there is room
	Counts counts
	Of     string
	Look   look // the state that most needs to be seen
	Link   string
}

// Sizes of a drawing, in pixels.
const (
	boxWidth, boxHeight = 210, 58
	gapX, gapY          = 56, 18
	mostLabel           = 22 // characters
)

// draw places the steps by how many come before them at most, and lists those of one distance from top to bottom.
func draw(r ref, g *graph.Graph, status []v1alpha1.StepStatus) drawing {
	counted := map[v1alpha1.StepName]counts{}
	for _, s := range status {
		counted[s.Name] = countsOfNodes(s.NodeCounts)
	}
	column := columns(g)
	rows := map[int]int{}
	d := drawing{}
	for i, s := range g.Steps {
		x, y := column[i]*(boxWidth+gapX), rows[column[i]]*(boxHeight+gapY)
		rows[column[i]]++
		c := counted[s.Name]
		d.Boxes = append(d.Boxes, box{
			X:      x + 2,
			Y:      y + 2,
			Name:   string(s.Name),
			Label:  short(string(s.Name), mostLabel),
			Counts: c,
			Of:     times(s),
			Look:   lookOfCounts(c),
			Link:   linkTo(r) + "?step=" + string(s.Name) + "#one",
		})
		d.Width, d.Height = max(d.Width, x+boxWidth+4), max(d.Height, y+boxHeight+4)
	}
	for i, s := range g.Steps {
		for _, k := range s.Needs {
			from, to := d.Boxes[k], d.Boxes[i]
			x1, y1, x2, y2 := from.X+boxWidth, from.Y+boxHeight/2, to.X, to.Y+boxHeight/2
			d.Lines = append(
				d.Lines,
				fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+gapX/2, y1, x2-gapX/2, y2, x2, y2),
			)
		}
	}
	return d
}

// columns returns how far to the right each step is; finally comes last.
func columns(g *graph.Graph) []int {
	at := make([]int, len(g.Steps))
	for range g.Steps { // as often as the longest way may be long
		for i, s := range g.Steps {
			for _, k := range s.Needs {
				at[i] = max(at[i], at[k]+1)
			}
		}
	}
	for i, s := range g.Steps {
		if s.Final {
			for k := range i {
				at[i] = max(at[i], at[k]+1)
			}
		}
	}
	return at
}

// times says how often a step runs.
func times(s graph.Step) string {
	switch {
	case s.Final:
		return "at the end"
	case s.All:
		return "once for all"
	case s.Each > 1:
		return fmt.Sprintf("%d per sequence", s.Each)
	}
	return "1 per sequence"
}

func lookOfCounts(c counts) look {
	for _, state := range urgency {
		if c.of(state) > 0 {
			return lookOf(state)
		}
	}
	return lookOf(aggregate.NodeWaiting)
}

func short(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// metric is a line of results, with what a small plot of it is drawn from. The plot is 100 wide, from the least result
// to the greatest.
type metric struct {
	v1alpha1.MetricStatus
	Deviation        float64
	Mid, From, Width float64 // the mean, and one standard deviation around it
}

func metricOf(m v1alpha1.MetricStatus) metric {
	p := metric{MetricStatus: m, Deviation: math.Sqrt(max(0, m.Variance)), Mid: 50, Width: 0, From: 50}
	span := m.Max - m.Min
	if !(span > 0) || math.IsInf(span, 0) {
		return p
	}
	at := func(x float64) float64 { return min(100, max(0, 100*(x-m.Min)/span)) }
	p.Mid, p.From = at(m.Mean), at(m.Mean-p.Deviation)
	p.Width = at(m.Mean+p.Deviation) - p.From
	return p
}

// Value writes a result as short as it can be told from its neighbours.
func (metric) Value(x float64) string { return fmt.Sprintf("%.5g", x) }
