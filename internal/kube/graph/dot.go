package graph

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// DOT draws the steps in the language of Graphviz. Steps that the status does not count are drawn with how many nodes
// they have; sequences is 0 if nobody knows yet how many there are.
func (g *Graph) DOT(name string, sequences int, status []v1alpha1.StepStatus) string {
	counted := map[v1alpha1.StepName]v1alpha1.NodeCounts{}
	for _, s := range status {
		counted[s.Name] = s.NodeCounts
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  node [shape=box, style=filled, fillcolor=white, fontname=sans];\n", quote(name))
	if nodes := g.Drawn(); nodes != nil {
		g.drawNodes(&b, nodes)
		return b.String()
	}
	totals := g.Totals(sequences)
	for i, s := range g.Steps {
		counts, known := counted[s.Name]
		label := string(s.Name) + "\n" + size(s, totals[i])
		color := "white"
		if known {
			label, color = string(s.Name)+"\n"+progress(counts), fill(counts)
		}
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=%s];\n", quote(string(s.Name)), quote(label), color)
	}
	needed := make([]bool, len(g.Steps))
	for _, s := range g.Steps {
		for _, k := range s.Needs {
			needed[k] = true
			fmt.Fprintf(&b, "  %s -> %s%s;\n", quote(string(g.Steps[k].Name)), quote(string(s.Name)), drawn(s, k))
		}
	}
	if last := g.Steps[len(g.Steps)-1]; last.Final {
		for k, s := range g.Steps[:len(g.Steps)-1] {
			if !needed[k] {
				fmt.Fprintf(&b, "  %s -> %s [style=dashed];\n", quote(string(s.Name)), quote(string(last.Name)))
			}
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// MostDrawn is how many nodes of spec.graph are drawn one by one, if they depend on each other in mostLines ways at
// most.
const (
	MostDrawn = 1000
	mostLines = 20_000
)

// Drawn returns the nodes of spec.graph, if they have been read and are so few that each can be drawn.
func (g *Graph) Drawn() []Node {
	if n := len(g.parents); n == 0 || n > MostDrawn {
		return nil
	}
	lines := 0
	for i := range g.parents {
		lines += len(g.parents[i]) + len(g.loose[i])
	}
	if lines > mostLines {
		return nil
	}
	return g.listed()
}

// drawNodes draws those of spec.graph in place of the steps.
func (g *Graph) drawNodes(b *strings.Builder, nodes []Node) {
	for i, n := range nodes {
		fmt.Fprintf(b, "  n%d [label=%s];\n", i, quote(n.Name+"\n"+string(g.Steps[n.Step].Name)))
	}
	for i, n := range nodes {
		for _, p := range n.Parents {
			fmt.Fprintf(b, "  n%d -> n%d;\n", p, i)
		}
		for _, p := range n.Ended {
			fmt.Fprintf(b, "  n%d -> n%d [style=dashed];\n", p, i)
		}
	}
	b.WriteString("}\n")
}

// size is how many nodes a step has; 0 in all if nobody knows.
func size(s Step, total int) string {
	switch {
	case s.Each == 0:
		return "a node for each row"
	case total == 0:
		return fmt.Sprintf("%d in each sequence", s.Each)
	case total == 1:
		return "1 node"
	default:
		return fmt.Sprintf("%d nodes", total)
	}
}

// progress is how far a step is.
func progress(c v1alpha1.NodeCounts) string {
	text := fmt.Sprintf("%d/%d done", c.Done, c.Total)
	for _, more := range []struct {
		n    int32
		what string
	}{{c.Running, "running"}, {c.Idle, "idle"}, {c.Held, "held"}, {c.Failed, "failed"}, {c.Futile, "futile"}} {
		if more.n > 0 {
			text += fmt.Sprintf("\n%d %s", more.n, more.what)
		}
	}
	return text
}

func fill(c v1alpha1.NodeCounts) string {
	switch {
	case c.Failed > 0:
		return "lightpink"
	case c.Held > 0:
		return "khaki"
	case c.Total > 0 && c.Done == c.Total:
		return "palegreen"
	case c.Running+c.Idle > 0:
		return "lightblue"
	default:
		return "white"
	}
}

// drawn labels the edge from step k with the files that are pulled along it. It is dashed where any outcome will do.
func drawn(s Step, k int) string {
	var paths []string
	for _, p := range s.Pulls {
		if p.From == k {
			paths = append(paths, p.Path)
		}
	}
	var style []string
	if len(paths) > 0 {
		style = append(style, "label="+quote(strings.Join(paths, "\n")))
	}
	if s.loose[k] {
		style = append(style, "style=dashed")
	}
	if len(style) == 0 {
		return ""
	}
	return " [" + strings.Join(style, ", ") + "]"
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "").Replace(text) + `"`
}
