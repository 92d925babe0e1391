package convert

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/dagsteps"
)

// maxPulls is that of the API.
const maxPulls = 20

// A puller finds the steps whose files a step takes. In HTCondor they meet in the directory of the DAG; here they are
// pulled.
type puller struct {
	flow     *dagsteps.Flow
	steppers []*stepper // of the steps before
	works    []*work
	step     int
	pulls    []v1alpha1.Pull
}

// pull says whether an input of the job of this number is pulled: one that a step before names among its outputs, or
// prints, or one that is not here and can only come from the one step that is needed. The result is a line of the
// script that puts it to its place, if it has another there.
func (p *puller) pull(at, name string, here bool, job int) (string, bool) {
	if f, is := p.printed(at, job); is {
		return p.copy(f), true
	}
	for _, k := range p.before() {
		for _, o := range p.works[k].Job.Outputs {
			if p.lands(k, o.Path) == at && !strings.Contains(o.Path, "*") {
				return p.from(k, o.Path, name)
			}
		}
		if move, is := p.pattern(k, at, name, job); is {
			return move, true
		}
	}
	needs := p.flow.Steps[p.step].Needs
	if here || markRE.MatchString(at) || len(needs) != 1 || p.works[needs[0]] == nil ||
		len(p.works[needs[0]].Job.Outputs) > 0 || p.lands(needs[0], name) != at {
		return "", false
	}
	return p.from(needs[0], name, name)
}

// pattern pulls a file that each job of a step calls otherwise, so that the step has a pattern for it: of the same
// sequence, or of any job of a step that has no sequences.
func (p *puller) pattern(k int, at, name string, job int) (string, bool) {
	of := p.steppers[k].a.g.parts
	if p.flow.Parents != nil || p.flow.Sequences > 1 && len(of) != p.flow.Sequences {
		return "", false
	}
	for i, parts := range of {
		for _, file := range parts.outputs {
			if p.lands(k, file) != at || p.flow.Sequences > 1 && i != job {
				continue
			}
			pull := v1alpha1.Pull{From: v1alpha1.StepName(p.flow.Steps[k].Name)}
			for _, o := range p.works[k].Job.Outputs {
				if matched(o.Path, file) {
					pull.Path = o.Path
				}
			}
			if pull.Path == "" {
				return "", false
			}
			return p.fromJob(pull, i, file, name), true
		}
	}
	return "", false
}

// fromJob pulls what is called so in the job of this number of a step, whose jobs call it each otherwise.
func (p *puller) fromJob(pull v1alpha1.Pull, i int, file, name string) string {
	if !slices.Contains(p.pulls, pull) {
		p.pulls = append(p.pulls, pull)
	}
	if p.flow.Sequences == 1 {
		var only v1alpha1.HTCWorkflowSpec
		file = fmt.Sprintf("%s/%d/%s", only.SequenceName(0), i, file)
	}
	if file == name {
		return ""
	}
	return fmt.Sprintf("mv %s %s", quote(file), quote(name))
}

// rewrites finds a file that a job of the step itself is to leave, pulls, and has only a pattern for: these match
// nothing that was there before.
func (p *puller) rewrites(step int) (string, bool) {
	for _, of := range p.steppers[step].a.g.parts {
		for _, file := range of.outputs {
			byPattern := slices.ContainsFunc(p.works[step].Job.Outputs, func(o v1alpha1.StepOutput) bool {
				top, _, _ := strings.Cut(o.Path, "/")
				return strings.Contains(top, "*") && matched(o.Path, file)
			})
			pulled := slices.ContainsFunc(p.pulls, func(pull v1alpha1.Pull) bool {
				return matched(pull.Path, file)
			})
			if byPattern && pulled {
				return file, true
			}
		}
	}
	return "", false
}

func matched(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return err == nil && is
}

// lands is where HTCondor puts a file that a step leaves.
func (p *puller) lands(k int, file string) string {
	if !p.steppers[k].a.g.parts[0].keeps {
		file = path.Base(file)
	}
	return path.Join(p.flow.Steps[k].Nodes[0][0].Dir, file)
}

func (p *puller) from(k int, file, name string) (string, bool) {
	if p.works[k].jobs > p.flow.Sequences {
		return "", false
	}
	pull := v1alpha1.Pull{From: v1alpha1.StepName(p.flow.Steps[k].Name), Path: file}
	if !slices.Contains(p.pulls, pull) {
		p.pulls = append(p.pulls, pull)
		if file != name {
			return fmt.Sprintf("mv %s %s", quote(file), quote(name)), true
		}
	}
	return "", true
}

// before are the steps that have ended when this one begins, the nearest first.
func (p *puller) before() []int {
	seen := map[int]bool{}
	next := slices.Clone(p.flow.Steps[p.step].Needs)
	var all []int
	for len(next) > 0 {
		k := next[0]
		next = next[1:]
		if seen[k] || p.works[k] == nil {
			continue
		}
		seen[k] = true
		all = append(all, k)
		next = append(next, p.flow.Steps[k].Needs...)
	}
	return all
}
