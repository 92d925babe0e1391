package graph

import (
	"fmt"
	"slices"
	"strings"
)

// order returns the steps so that each comes after those that it needs, otherwise in their own order. finally is not
// among them.
func (g *Graph) order() ([]int, error) {
	var order []int
	placed := make([]bool, len(g.Steps))
	for {
		next := 0
		for next < len(g.Steps) && !g.ready(next, placed) {
			next++
		}
		if next == len(g.Steps) {
			break
		}
		placed[next] = true
		order = append(order, next)
	}
	for i, s := range g.Steps {
		if !placed[i] && !s.Final {
			return nil, fmt.Errorf("spec.steps: no step of a cycle could ever run: %s", g.cycle(i, placed))
		}
	}
	return order, nil
}

func (g *Graph) ready(i int, placed []bool) bool {
	s := g.Steps[i]
	return !placed[i] && !s.Final && !slices.ContainsFunc(s.Needs, func(k int) bool { return !placed[k] })
}

// cycle describes the cycle that one comes to from a step which could not be placed.
func (g *Graph) cycle(from int, placed []bool) string {
	var path []int
	for !slices.Contains(path, from) {
		path = append(path, from)
		needs := g.Steps[from].Needs
		from = needs[slices.IndexFunc(needs, func(k int) bool { return !placed[k] })]
	}
	path = path[slices.Index(path, from):]
	var words []string
	for i, k := range path {
		words = append(words, fmt.Sprintf("%s needs %s", g.Steps[k].Name, g.Steps[path[(i+1)%len(path)]].Name))
	}
	return strings.Join(words, ", ")
}

// level puts the steps into levels.
func (g *Graph) level(order []int) {
	for _, i := range order {
		s := &g.Steps[i]
		for _, k := range s.Needs {
			before := g.Steps[k]
			level := before.Level
			if s.All && !before.All {
				level++
			}
			s.Level = max(s.Level, level)
		}
		if s.table != nil {
			s.Level = max(s.Level, g.Steps[s.table.From].Level+1)
		}
		g.put(i)
	}
	if last := len(g.Steps) - 1; g.Steps[last].Final {
		g.Steps[last].Level = len(g.Levels)
		g.put(last)
	}
}

// checkCompletions refuses sequences that would have to begin when steps for all of them have run.
func (g *Graph) checkCompletions() error {
	if g.spec.Sequences == nil || g.spec.Sequences.Completions == nil {
		return nil
	}
	first := -1
	for i, s := range g.Steps {
		switch {
		case s.All:
		case first < 0:
			first = i
		case s.Level != g.Steps[first].Level:
			late := s
			if s.Level < g.Steps[first].Level {
				late = g.Steps[first]
			}
			return fmt.Errorf(
				"spec.sequences.completions: the step %q runs in each sequence after a step for all of them, or by a table that one writes, and then no others can begin: "+
					"give it pairing All, or write complete, with a higher count, in place of completions",
				late.Name,
			)
		}
	}
	return nil
}

// put adds a step to its level. A level is never empty below another: some step of it is needed there.
func (g *Graph) put(i int) {
	for len(g.Levels) <= g.Steps[i].Level {
		g.Levels = append(g.Levels, nil)
	}
	g.Levels[g.Steps[i].Level] = append(g.Levels[g.Steps[i].Level], i)
}

// After returns which steps come after a step, however far; finally is not among them.
func (g *Graph) After(i int) []bool {
	come := make([]bool, len(g.Steps))
	for k := range g.Steps {
		come[k] = !g.Steps[k].Final && g.before(k)[i]
	}
	return come
}

// before returns which steps come before a step, however far; all of them for finally.
func (g *Graph) before(i int) []bool { return g.reach(i, true) }

// ended is before for those of which all jobs have ended in the sequence when one of the step begins.
func (g *Graph) ended(i int) []bool { return g.reach(i, false) }

// reach follows what is needed. Of a step that is needed in pairs each node needs some, and so all that those need.
func (g *Graph) reach(i int, paired bool) []bool {
	come, seen := make([]bool, len(g.Steps)), make([]bool, len(g.Steps))
	var visit func(int)
	visit = func(i int) {
		for _, k := range g.Steps[i].Needs {
			come[k] = come[k] || paired || g.Steps[i].by[k] == nil
			if !seen[k] {
				seen[k] = true
				visit(k)
			}
		}
	}
	if g.Steps[i].Final {
		for k := range i {
			come[k] = true
		}
	}
	visit(i)
	return come
}
