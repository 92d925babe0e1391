package convert

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// A step whose standard output or error a step after has as an input prints it into a file, once more at its end, and
// the file is pulled.

// standardStream is what a program prints to.
type standardStream int

const (
	standardOutput standardStream = iota
	standardError
)

// streams says of each of them whether a file has it, too.
type streams [2]bool

// kept is where a stream goes while the program runs, out of the way of the files in its directory.
func (s standardStream) kept() string { return [...]string{"/tmp/stdout", "/tmp/stderr"}[s] }

// command is what a submit file calls it.
func (s standardStream) command() string { return [...]string{"output", "error"}[s] }

// place is where a job's stream lands, as the submit file has it.
func (l lands) place(s standardStream) string { return [...]string{l.stdout, l.stderr}[s] }

// at is the same from the directory of the DAG; empty: nowhere.
func (l lands) at(s standardStream) string {
	if l.place(s) == "" {
		return ""
	}
	return path.Clean(l.in(l.place(s)))
}

// redirected is what follows the program for a stream of which there is to be a file.
func (c streams) redirected(s standardStream) string {
	if !c[s] {
		return ""
	}
	return [...]string{" > ", " 2> "}[s] + s.kept()
}

// copied are the lines that print what the program has printed, and make files of it.
func (a *assembly) copied() []string {
	var lines []string
	for i, to := range []string{"", " >&2"} {
		if s := standardStream(i); a.copies[s] {
			name := a.phrase("PRINTED", func(p parts) string { return printedName(p, s) })
			lines = append(lines, "cat "+s.kept()+to, "mv "+s.kept()+" "+name)
		}
	}
	return lines
}

// copiedAs are these files, as the places of files are said.
func (a *assembly) copiedAs() []string {
	var files []string
	for s := standardOutput; s <= standardError; s++ {
		if a.copies[s] {
			files = append(files, a.text("PRINTED", printedName(a.g.marked, s),
				func(i int) string { return printedName(a.g.parts[i], s) }))
		}
	}
	return files
}

// printedName is what a file of what a job prints is called.
func printedName(p parts, s standardStream) string { return path.Base(p.lands.place(s)) }

// printedFile is what a job of a step before prints.
type printedFile struct {
	step, job int
	stream    standardStream
	at        string // its place, as DAGMan has it
	left      bool   // it is an output of the step, too
}

// printed finds what has this place in the directory of the DAG, for the job of this number, in the nearest step that
// leaves something there.
func (p *puller) printed(at string, number int) (printedFile, bool) {
	for _, k := range p.before() {
		of := p.steppers[k].a.g.parts
		left := slices.ContainsFunc(of, func(job parts) bool {
			return slices.ContainsFunc(job.outputs, func(file string) bool { return p.lands(k, file) == at })
		})
		for s := standardOutput; s <= standardError; s++ {
			alike := !slices.ContainsFunc(of, func(job parts) bool { return job.lands.at(s) != at })
			for i, job := range of {
				if job.lands.at(s) == at && (p.flow.Sequences == 1 || i == number || alike) {
					return printedFile{k, i, s, at, left}, true
				}
			}
		}
		if left {
			break
		}
	}
	return printedFile{}, false
}

// path is what is pulled of it: a pattern, if the jobs call it each otherwise.
func (p *puller) path(f printedFile) string {
	of := p.steppers[f.step].a.g.parts
	name := printedName(of[0], f.stream)
	for _, job := range of {
		if other := printedName(job, f.stream); other != name {
			name = common(name, other)
		}
	}
	return name
}

// unfit says why what is printed cannot be pulled, and what to write instead; empty: it can.
func (p *puller) unfit(f printedFile) (why, instead string) {
	s, w := p.steppers[f.step], p.works[f.step]
	sharing := 0
	for _, job := range s.a.g.parts {
		name, other := printedName(job, f.stream), 1-f.stream
		switch {
		case f.left, slices.Contains(job.outputs, name):
			return "transfer_output_files of that node has " + name + ", too", "another name for one of the two"
		case !outputRE.MatchString(name), reservedRE.MatchString(name):
			return fmt.Sprintf("no output of a step can be called %q", name), "letters, digits and _ . + = @ % ~ : -"
		case s.a.g.shape.Joined:
		case job.lands.at(other) == job.lands.at(f.stream):
			return "its output and its error are two files there", "the same words for both, or two places"
		case s.copies[other] && printedName(job, other) == name:
			return "its output and its error are both files that are called " + name, "another name for one of the two"
		}
		if job.lands.at(f.stream) == f.at {
			sharing++
		}
	}
	file := "a program that writes it into a file, and transfer_output_files with its name"
	pattern := p.path(f)
	same := func(path string) bool { return matched(pattern, path) || matched(path, pattern) }
	switch {
	case s.a.spec.Checkpoint != nil:
		return "when it goes on after an interruption, what it had printed before is lost", file
	case p.flow.Sequences == 1 && sharing > 1, p.flow.Sequences > 1 && w.jobs > p.flow.Sequences:
		return "several of its jobs print there", "$(Process), or $(JOB), in " + f.stream.command() + " of that node"
	case strings.Contains(pattern, "*") &&
		(slices.ContainsFunc(w.Job.Inputs, func(in v1alpha1.Input) bool { return same(in.Name) }) ||
			slices.ContainsFunc(w.Pull, func(pull v1alpha1.Pull) bool { return same(pull.Path) })):
		return "it has inputs of such names, too", "another name in " + f.stream.command() + " of that node"
	}
	return "", ""
}

func matched(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return err == nil && is
}

// copy has a step leave what it prints, pulls that, and returns the line of the script that gives it its name.
func (p *puller) copy(f printedFile) string {
	if s := p.steppers[f.step]; !s.copies[f.stream] {
		s.copies[f.stream] = true
		s.late(f.stream, "; a step pulls it, so that it is there when the program has ended")
		if other := p.beside(f); s.nodes[0].Post != nil && !s.copies[other.stream] && p.fits(other) {
			s.copies[other.stream] = true
			s.late(other.stream, "; it is there when the program has ended, for what runs then")
		}
		pulls := p.works[f.step].Pull
		p.works[f.step] = s.work(nil)
		p.works[f.step].Pull = pulls
	}
	name := path.Base(f.at)
	pull := v1alpha1.Pull{From: v1alpha1.StepName(p.flow.Steps[f.step].Name), Path: p.path(f)}
	if p.works[f.step].jobs > p.flow.Sequences {
		return p.fromJob(pull, f.job, name, name)
	}
	if !slices.Contains(p.pulls, pull) {
		p.pulls = append(p.pulls, pull)
	}
	return ""
}

// beside is the other stream of the same job. What runs after a node looks at both of them.
func (p *puller) beside(f printedFile) printedFile {
	f.stream = 1 - f.stream
	f.at = p.steppers[f.step].a.g.parts[f.job].lands.at(f.stream)
	return f
}

// fits reports whether there can be a file of what is printed.
func (p *puller) fits(f printedFile) bool {
	why, _ := p.unfit(f)
	return f.at != "" && !p.steppers[f.step].a.g.shape.Joined && why == ""
}

// late says that what is printed can be read at the end only.
func (s *stepper) late(of standardStream, words string) {
	_, by, err := valueOfCommand(s.a.g.jobs[0], of.command())
	if err != nil || by == nil {
		return
	}
	if l, said := s.lines[by]; said {
		l.Words += words
		s.lines[by] = l
	}
}
