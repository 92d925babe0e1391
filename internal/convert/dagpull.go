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
	moves    map[v1alpha1.Pull]string // of the first of each job
	err      error                    // why its nodes are no step together
}

// pull says whether an input of the job of this number is pulled: one that a step before names among its outputs, or
// prints, or one that is not here and that a step before leaves without naming it. The result is a line of the script
// that puts it to its place, if it has another there, and what to see to.
func (p *puller) pull(at, name string, here bool, job int) (move string, pulled bool, ask Line) {
	if f, is := p.printed(at, job); is {
		return p.copy(f, name), true, Line{}
	}
	before := p.before()
	for _, k := range before {
		if o, is := p.leaves(k, at, job); is {
			move, pulled = p.left(k, o, name)
			return move, pulled, Line{}
		}
	}
	if markRE.MatchString(at) {
		return "", false, Line{}
	}
	for _, k := range before {
		pattern, i, file := p.written(k, at, job)
		switch {
		case file == "":
		case here:
			words := at + " is taken from here, though step " + p.flow.Steps[k].Name + " may leave another one"
			return "", false, Line{Verdict: Asks, Words: words,
				Instead: "transfer_output_files with its name in that node, if it does"}
		default:
			return p.from(k, pattern, i, file, name), true, Line{}
		}
	}
	return p.unnamed(at, name, here, job)
}

// written finds the job of a step that names no outputs, and has one with this place among the words of its program:
// the pattern that this is for all of its jobs, its number, and what it calls it.
func (p *puller) written(k int, at string, job int) (pattern string, i int, file string) {
	s := p.steppers[k]
	of, word, is := s.a.g.parts, 0, false
	if file = path.Base(at); p.flow.Sequences > 1 {
		if len(of) > p.flow.Sequences || job >= len(of) {
			return "", 0, ""
		}
		word, is = of[job].writes(file)
	} else {
		var found [2]int
		found, is = s.written(file)
		job, word = found[0], found[1]
	}
	if !is {
		return "", 0, ""
	}
	pattern = s.atWord(word)
	if _, is = of[job].unnamed(at); !is || pattern == "" {
		return "", 0, ""
	}
	return pattern, job, file
}

// writes is the number of the word that names a file which is no input of the job.
func (p parts) writes(file string) (int, bool) {
	word := slices.IndexFunc(p.words, func(word string) bool { return isFile(word, file) })
	return word, word >= 0 && !slices.Contains(p.takes, file)
}

// written finds a job that writes a file, and the number of the word that says so.
func (s *stepper) written(file string) (found [2]int, is bool) {
	if s.files == nil {
		s.files = map[string][2]int{}
		for i, p := range s.a.g.parts {
			for word, text := range p.words {
				name := fileOf(text)
				if _, known := s.files[name]; !known && !slices.Contains(p.takes, name) {
					s.files[name] = [2]int{i, word}
				}
			}
		}
	}
	found, is = s.files[file]
	return found, is
}

// atWord is the pattern for the files that all jobs have at a word; empty: some name outputs, or have fewer words.
func (s *stepper) atWord(word int) string {
	if pattern, known := s.patterns[word]; known {
		return pattern
	}
	pattern := ""
	for i, p := range s.a.g.parts {
		if p.named || len(p.words) <= word {
			pattern = ""
			break
		}
		switch name := fileOf(p.words[word]); {
		case i == 0:
			pattern = name
		case name != pattern:
			pattern = common(pattern, name)
		}
	}
	if s.patterns == nil {
		s.patterns = map[int]string{}
	}
	s.patterns[word] = pattern
	return pattern
}

// fileOf is the file that a word of a program names: --out=FILE.
func fileOf(word string) string { return path.Clean(word[strings.LastIndex(word, "=")+1:]) }

func isFile(word, file string) bool { return fileOf(word) == file }

// unnamed pulls what can only come from the one step that is needed, and asks if others before it name no outputs, too.
func (p *puller) unnamed(at, name string, here bool, job int) (move string, pulled bool, ask Line) {
	needs := p.flow.Steps[p.step].Needs
	if here || len(needs) != 1 || p.works[needs[0]] == nil || p.works[needs[0]].jobs > p.flow.Sequences {
		return "", false, Line{}
	}
	k := needs[0]
	file, is := p.steppers[k].a.g.parts[0].unnamed(at)
	if !is {
		return "", false, Line{}
	}
	for _, other := range p.before() {
		if _, is := p.steppers[other].a.g.parts[0].unnamed(at); is && other != k {
			ask = Line{Verdict: Asks, Words: "which node leaves " + at + " is not said: it is pulled from step " +
				p.flow.Steps[k].Name, Instead: "transfer_output_files with its name in the node that leaves it"}
		}
	}
	return p.from(k, file, job, file, name), true, ask
}

// leaves finds the output of a step that has this place in the directory of the DAG, or the one that is a directory
// with it: of the same sequence, or of any job of a step that has no sequences.
func (p *puller) leaves(k int, at string, job int) (leftFile, bool) {
	of, all := p.steppers[k].a.g.parts, p.prints(k)
	for below := ""; at != "." && at != "/"; below, at = path.Join(path.Base(at), below), path.Dir(at) {
		o, is := all.left[at]
		if p.flow.Sequences > 1 {
			if job >= len(of) || p.works[k].jobs > p.flow.Sequences {
				return leftFile{}, false
			}
			o = leftFile{job: job, jobs: 1}
			o.file, is = of[job].called(at)
		}
		if is {
			o.below = below
			return o, true
		}
	}
	return leftFile{}, false
}

// left pulls an output.
func (p *puller) left(k int, o leftFile, name string) (string, bool) {
	if o.jobs > 1 {
		return "", false
	}
	file, pattern := p.steppers[k].rename(o.job, o.file)
	if file != o.file {
		pulls := p.works[k].Pull
		p.works[k] = p.steppers[k].work(nil)
		p.works[k].Pull = pulls
	}
	for _, of := range p.works[k].Job.Outputs {
		if matched(of.Path, file) {
			pattern = of.Path
		}
	}
	switch {
	case pattern != "":
	case p.works[k].jobs > 1 || p.steppers[k].a.g.parts[0].named:
		return "", false
	default:
		pattern = file
	}
	return p.from(k, path.Join(pattern, o.below), o.job, path.Join(file, o.below), name), true
}

// from pulls what has this path, or pattern, in the jobs of a step, and is this file in the one of this number. The
// result is a line of the script that puts it to its place: in . what is in it.
func (p *puller) from(k int, at string, job int, file, name string) string {
	pull := v1alpha1.Pull{From: v1alpha1.StepName(p.flow.Steps[k].Name), Path: at}
	if p.flow.Sequences == 1 && p.works[k].jobs > 1 {
		var only v1alpha1.HTCWorkflowSpec
		file = fmt.Sprintf("%s/%d/%s", only.SequenceName(0), job, file)
	}
	move := ""
	switch dir := path.Dir(name); {
	case name == ".":
		move = fmt.Sprintf("contents=\"$contents $(ls %[1]s)\"\nmv %[1]s/* .\nrmdir %[1]s", quote(file))
	case file == name:
	case dir != ".":
		move = fmt.Sprintf("mkdir -p %s\nmv %s %s", quote(dir), quote(file), quote(name))
	default:
		move = fmt.Sprintf("mv %s %s", quote(file), quote(name))
	}
	before, pulled := p.moves[pull]
	if pulled && p.flow.Sequences > 1 && move != before {
		p.err = fmt.Errorf("its sequences give what they pull different names")
	}
	if !pulled {
		p.pulls = append(p.pulls, pull)
	}
	p.moves[pull] = move
	return move
}

// meet says why its nodes cannot be one step: two files that they pull, or have as inputs, would lie at the same place
// before they are moved to their own.
func (p *puller) meet(inputs []v1alpha1.Input) error {
	if p.err != nil {
		return p.err
	}
	type place struct {
		path   string
		nested bool
	}
	lies := map[place]bool{}
	for _, in := range inputs {
		lies[place{path: in.Name}] = true
	}
	for _, pull := range p.pulls {
		k := slices.IndexFunc(p.flow.Steps, func(s dagsteps.Step) bool { return s.Name == string(pull.From) })
		at := place{pull.Path, p.flow.Sequences == 1 && p.works[k].jobs > 1}
		if lies[at] {
			return fmt.Errorf("what it pulls from %s meets another file called %s", pull.From, pull.Path)
		}
		lies[at] = true
	}
	return nil
}

// rewrites finds a file that a job of the step is to leave, has as an input, and has only a pattern for: these match
// nothing that was there before.
func (s *stepper) rewrites(w *work) (string, bool) {
	takes := map[string]bool{}
	for _, of := range s.a.g.parts {
		for _, name := range of.takes {
			takes[name] = true
		}
	}
	for _, of := range s.a.g.parts {
		for _, file := range of.outputs {
			byPattern := slices.ContainsFunc(w.Job.Outputs, func(o v1alpha1.StepOutput) bool {
				top, _, _ := strings.Cut(o.Path, "/")
				return strings.Contains(top, "*") && matched(o.Path, file)
			})
			if byPattern && takes[file] {
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

// before are the steps that have ended when this one begins, the last of them first: what they leave replaces what
// the others have left.
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
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// replaced are the outputs of a step before this one which has outputs at the same places.
func (p *puller) replaced(k int) []string {
	var all []string
	of, ours := p.steppers[k].a.g.parts, p.prints(p.step).left
	for _, o := range p.works[k].Job.Outputs {
		there := func(parts parts) bool { return ours[parts.at(o.Path)].jobs > 0 }
		if !strings.Contains(o.Path, "*") && !slices.ContainsFunc(of, func(parts parts) bool { return !there(parts) }) {
			all = append(all, o.Path)
		}
	}
	return all
}
