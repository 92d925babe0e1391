package graph

import (
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// pull sets what each step pulls.
func (g *Graph) pull(number map[v1alpha1.StepName]int) error {
	for i := range g.Steps {
		s := &g.Steps[i]
		where := fmt.Sprintf("spec.steps[%d]", i)
		if s.Final {
			where = "spec.finally"
		}
		before, ended := g.before(i), g.ended(i)
		type place struct {
			all, indexed, several bool
			path                  string
		}
		lies := map[place]v1alpha1.StepName{}
		for n, p := range s.StepWork.Pull {
			k, known := number[p.From]
			switch {
			case p.Artifact != "": // htcd brings it
				if other, taken := lies[place{path: p.Path}]; taken {
					return fmt.Errorf(
						"%s.pull[%d]: what comes from %q and from %q would lie at the same place, %s: let one of these steps give its file another name",
						where,
						n,
						other,
						p.Artifact,
						p.Path,
					)
				}
				lies[place{path: p.Path}] = v1alpha1.StepName(p.Artifact)
				continue
			case !known:
				return fmt.Errorf("%s.pull[%d]: %w", where, n, g.unknown(p.From))
			case g.Listed() && !s.Final:
				s.Pulls = append(s.Pulls, Pull{From: k, Path: p.Path, Several: true})
				continue
			case !before[k]:
				return fmt.Errorf(
					"%s.pull[%d]: the step %q does not come before %q: name it in needs",
					where,
					n,
					p.From,
					s.Name,
				)
			case !ended[k] && s.by[k] == nil:
				return fmt.Errorf(
					"%s.pull[%d]: not every job of %q has ended when one of %q begins, as some of them are paired with by: name it in needs, too",
					where,
					n,
					p.From,
					s.Name,
				)
			}
			from := g.Steps[k]
			pull := Pull{
				From:    k,
				Path:    p.Path,
				Several: from.Indexed && !s.one(k) || s.All && !from.All,
				Earlier: from.Level < s.Level,
			}
			at := place{several: pull.Several, path: p.Path}
			if pull.Several {
				at.all, at.indexed = from.All, from.Indexed
			}
			if other, taken := lies[at]; taken {
				return fmt.Errorf(
					"%s.pull[%d]: what comes from %q and from %q would lie at the same place, %s: let one of these steps give its file another name",
					where,
					n,
					other,
					p.From,
					p.Path,
				)
			}
			lies[at] = p.From
			s.Pulls = append(s.Pulls, pull)
		}
	}
	return nil
}
