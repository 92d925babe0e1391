package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// byNumber is the variable with a node's number within forEach.
const byNumber = "HTCPROCID"

// pairable notes by which variables the nodes of step i are paired with those of k, which it needs.
func (g *Graph) pairable(i, k int, by []string) error {
	s, from := &g.Steps[i], g.Steps[k]
	if s.All != from.All {
		return fmt.Errorf(
			"by pairs jobs of one sequence, and only one of %q and %q runs in each sequence: write %q alone",
			from.Name,
			s.Name,
			from.Name,
		)
	}
	for n, name := range by {
		if slices.Contains(by[:n], name) {
			return fmt.Errorf("by: %s stands there twice", name)
		}
		for _, of := range []v1alpha1.Step{g.spec.Steps[k], g.spec.Steps[i]} {
			switch {
			case of.ForEach == nil:
				return fmt.Errorf(
					"by pairs jobs of forEach, and the step %q has none: write %q alone",
					of.Name,
					from.Name,
				)
			case of.ForEach.Count > 0 && name != byNumber:
				return fmt.Errorf(
					"by: the jobs of the step %q have no items, and so no %s: by: [%s] pairs jobs of the same number",
					of.Name,
					name,
					byNumber,
				)
			}
		}
	}
	if s.by == nil {
		s.by, s.pairs = map[int][]string{}, map[int][][]int{}
	}
	s.by[k] = by
	return nil
}

// Fill gives the graph the tables that Read returns.
func (g *Graph) Fill(tables map[string][]string) {
	for i := range g.Steps {
		if all, read := tables[string(g.Steps[i].Name)]; read {
			g.Steps[i].items, g.Steps[i].Each = slices.Clone(all), len(all)
		}
	}
	g.filled = len(tables) > 0
	if g.Listed() {
		g.edges = tables[edgesTable]
		g.fillListed()
	}
}

// Count is Fill for those who need to know no more than how many there are.
func (g *Graph) Count(rows map[string]int) {
	for i := range g.Steps {
		if n, read := rows[string(g.Steps[i].Name)]; read {
			g.Steps[i].Each = n
		}
	}
}

// Item returns the variables that a node has of its own.
func (g *Graph) Item(n Node) string {
	if s := g.Steps[n.Step]; n.Index < len(s.items) {
		return s.items[n.Index]
	}
	return ""
}

// Priority returns what a node has in place of its step's; nil: nothing.
func (g *Graph) Priority(n Node) *int {
	if s := g.Steps[n.Step]; n.Index < len(s.priorities) {
		return s.priorities[n.Index]
	}
	return nil
}

// nameOf returns that of a node of spec.graph; empty: it has none of its own.
func (s Step) nameOf(index int) string {
	if index < len(s.names) {
		return s.names[index]
	}
	return ""
}

// pair finds which nodes of a step need which of another.
func (g *Graph) pair() error {
	for i, s := range g.Steps {
		for _, k := range slices.Sorted(maps.Keys(s.by)) {
			from := g.Steps[k]
			if s.Each == 0 || from.Each == 0 {
				continue // it is not known yet
			}
			groups, pairs := map[string][]int{}, make([][]int, s.Each)
			for index := range from.Each {
				key, err := from.key(index, s.by[k])
				if err != nil {
					return fmt.Errorf("spec.steps[%d].needs: %w", i, err)
				}
				groups[key] = append(groups[key], index)
			}
			for index := range s.Each {
				key, err := s.key(index, s.by[k])
				if err != nil {
					return fmt.Errorf("spec.steps[%d].needs: %w", i, err)
				}
				if pairs[index] = groups[key]; pairs[index] == nil {
					return fmt.Errorf(
						"spec.steps[%d].needs: row %d of the step %q has %s, and no row of %q has that: it would need nothing",
						i,
						index+1,
						s.Name,
						strings.TrimSuffix(strings.ReplaceAll(key, "\n", " "), " "),
						from.Name,
					)
				}
			}
			s.pairs[k] = pairs
		}
	}
	return nil
}

// key returns the lines of some variables of a node.
func (s Step) key(index int, by []string) (string, error) {
	if len(by) == 1 && by[0] == byNumber {
		return byNumber + "=" + strconv.Itoa(index), nil
	}
	values := map[string]string{byNumber: strconv.Itoa(index)}
	for line := range strings.Lines(s.items[index]) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[name] = value
	}
	var b strings.Builder
	for _, name := range by {
		value, there := values[name]
		if !there {
			return "", fmt.Errorf(
				"row %d of the step %q has no variable %s, by which jobs are paired",
				index+1,
				s.Name,
				name,
			)
		}
		b.WriteString(name + "=" + value + "\n")
	}
	return b.String(), nil
}

// Pairs reports whether the nodes of a step are paired with those of another.
func (g *Graph) Pairs(step, from int) bool { return g.Steps[step].by[from] != nil }

// one reports whether each node of a step is paired with exactly one of another, whatever the tables say.
func (s Step) one(k int) bool { return slices.Contains(s.by[k], byNumber) }
