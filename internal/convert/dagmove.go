package convert

import (
	"path"
	"slices"
	"strings"
)

// A move is a line of a step's script that puts what was pulled to its place; empty: it is there. These jobs want it,
// or all.
type move struct {
	line, target string
	word         string // for what has got another place so
	jobs         map[int]bool
	all          bool
}

// moved adds that a job wants something at its place. In a sequence there is only what its own jobs want.
func (p *puller) moved(all []*move, line, target string, job int) []*move {
	i := slices.IndexFunc(all, func(m *move) bool { return m.line == line && m.target == target })
	if i < 0 {
		m := &move{line: line, target: target, jobs: map[int]bool{}, all: p.flow.Sequences > 1 || target == "."}
		switch {
		case target == ".":
			m.word = "$contents"
		case line != "" && path.Dir(target) == ".":
			m.word = quote(target)
		}
		i, all = len(all), append(all, m)
	}
	all[i].jobs[job] = true
	return all
}

// unpacks says that the step takes what is in a directory out of it.
func (s *stepper) unpacks() bool {
	return slices.ContainsFunc(s.moves, func(m *move) bool { return m.target == "." })
}

// guarded says that only some jobs of the step want it.
func (m *move) guarded(a *assembly) bool { return !m.all && len(m.jobs) < len(a.g.jobs) }

// moves are the lines for all jobs of a step. What a job does not want it does not find either.
func (a *assembly) moves(all []*move) string {
	var b strings.Builder
	variable := ""
	if slices.ContainsFunc(all, func(m *move) bool { return m.guarded(a) }) {
		variable = a.variable("PULLED", func(i int) string {
			var names []string
			for _, m := range all {
				if m.guarded(a) && m.jobs[i] {
					names = append(names, m.target)
				}
			}
			return strings.Join(names, " ")
		})
	}
	for _, m := range all {
		wanted := `case " ${` + variable + `} " in *` + quote(" "+m.target+" ") + `*) `
		switch {
		case !m.guarded(a):
			if m.line != "" {
				b.WriteString(m.line + "\n")
			}
		case m.line == "":
			b.WriteString(wanted + ";; *) rm -rf " + quote(m.target) + " ;; esac\n")
		default:
			b.WriteString(wanted + strings.ReplaceAll(m.line, "\n", "; ") + " ;; esac\n")
		}
	}
	return b.String()
}
