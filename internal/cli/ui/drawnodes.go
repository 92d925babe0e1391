package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"htc.cern.ch/htcd/internal/cli/ui/layers"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// nodesDrawing is the graph of the nodes that spec.graph lists.
type nodesDrawing struct {
	Width, Height int
	Spots         []spot
	Lines         []edge
}

// spot is a node.
type spot struct {
	X, Y    int
	Name    string
	Label   string // the name, as far as there is room
	Look    look
	Link    string
	Current bool // it is shown below
}

// edge is a path of SVG, which is a part of the edges from a node to some.
type edge struct {
	From int
	To   string // numbers of nodes, with blanks between
	Path string
	Near bool // it is one of the current node's
	Weak bool // any outcome will do
}

// Sizes of a drawing of nodes, in pixels.
const (
	spotWidth, spotHeight = 150, 20
	spotGap, spotPitch    = 64, 27
	mostSpotLabel         = 18 // characters
)

// listedNodes are the nodes of spec.graph, if they are few enough to be drawn.
func listedNodes(tables map[string][]string, g *graph.Graph) []graph.Node {
	if !g.Listed() {
		return nil
	}
	g.Fill(tables)
	if g.Check(1) != nil {
		return nil
	}
	return g.Drawn()
}

// drawNodes places nodes in columns, each to the right of those that it needs.
func drawNodes(
	r ref,
	g *graph.Graph,
	nodes []graph.Node,
	states map[string]aggregate.NodeState,
	current string,
) nodesDrawing {
	parents := make([][]int, len(nodes))
	for i, n := range nodes {
		parents[i] = slices.Concat(n.Parents, n.Ended)
	}
	spots, lines := layers.Place(parents)
	x := func(s layers.Spot) int { return 2 + s.Column*(spotWidth+spotGap) }
	middle := func(s layers.Spot) int { return 2 + int(s.Y*spotPitch) + spotHeight/2 }
	var d nodesDrawing
	for i, n := range nodes {
		state, known := states[n.Name]
		if !known {
			state = aggregate.NodeWaiting
		}
		s := spot{X: x(spots[i]), Y: middle(spots[i]) - spotHeight/2, Name: n.Name, Look: lookOf(state)}
		s.Label = middled(n.Name, mostSpotLabel)
		s.Link = linkTo(r) + "?step=" + string(g.Steps[n.Step].Name) + "&node=" + url.QueryEscape(n.Name) + "#one"
		s.Current = current == n.Name
		d.Spots = append(d.Spots, s)
		d.Width, d.Height = max(d.Width, s.X+spotWidth+2), max(d.Height, s.Y+spotHeight+2)
	}
	for _, l := range lines {
		e := edge{
			From: l.Parent,
			To:   strings.Trim(fmt.Sprint(l.Children), "[]"),
			Near: d.Spots[l.Parent].Current,
			Weak: true,
		}
		for _, c := range l.Children {
			e.Near = e.Near || d.Spots[c].Current
			e.Weak = e.Weak && slices.Contains(nodes[c].Ended, l.Parent)
		}
		x1, y1, x2, y2 := x(l.From)+spotWidth, middle(l.From), x(l.To), middle(l.To)
		e.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+spotGap/2, y1, x2-spotGap/2, y2, x2, y2)
		if l.Passes {
			e.Path += fmt.Sprintf("h%d", spotWidth)
		}
		d.Lines = append(d.Lines, e)
	}
	return d
}

// middled leaves out the middle of a name that is too long: the ends tell those of one kind apart.
func middled(name string, most int) string {
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	text := []rune(name)
	return string(text[:most/2]) + "…" + string(text[len(text)-(most-most/2-1):])
}
