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

// redirected returns the redirection that follows the program, empty if no file is to have the stream.
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

// prints is what is known of what the jobs of a step print, which is not looked for in all of them again and again.
type prints struct {
	at      [2]map[string]int   // how many jobs print to a place
	first   [2]map[string]int   // the first of them
	left    map[string]leftFile // the outputs by their places
	pattern [2]string           // the names, as one for all
}

// leftFile is an output of a job: the first one of so many that leave something at its place.
type leftFile struct {
	job, jobs int
	file      string
	below     string // the path of what is meant in it
}

func (p *puller) prints(k int) *prints {
	s := p.steppers[k]
	if s.prints != nil {
		return s.prints
	}
	all := &prints{left: map[string]leftFile{}}
	for stream := range all.at {
		of := standardStream(stream)
		all.at[of], all.first[of] = map[string]int{}, map[string]int{}
		for i, job := range s.a.g.parts {
			at, name := job.lands.at(of), printedName(job, of)
			if all.at[of][at]++; all.at[of][at] == 1 {
				all.first[of][at] = i
			}
			if i == 0 {
				all.pattern[of] = name
			} else if name != all.pattern[of] {
				all.pattern[of] = common(all.pattern[of], name)
			}
		}
	}
	for i, job := range s.a.g.parts {
		for _, file := range job.leaves() {
			o, is := all.left[job.at(file)]
			if !is {
				o = leftFile{job: i, file: file}
			}
			o.jobs++
			all.left[job.at(file)] = o
		}
	}
	s.prints = all
	return all
}

// printed finds what has this place in the directory of the DAG, for the job of this number, in the nearest step that
// leaves something there.
func (p *puller) printed(at string, number int) (printedFile, bool) {
	for _, k := range p.before() {
		of, all := p.steppers[k].a.g.parts, p.prints(k)
		left := all.left[at].jobs > 0
		for s := standardOutput; s <= standardError; s++ {
			jobs := all.at[s][at]
			switch i := all.first[s][at]; {
			case at == "" || jobs == 0:
			case p.flow.Sequences == 1 || jobs == len(of):
				return printedFile{k, i, s, at, left}, true
			case number < len(of) && of[number].lands.at(s) == at:
				return printedFile{k, number, s, at, left}, true
			}
		}
		if left {
			break
		}
	}
	return printedFile{}, false
}

// unfit says why what is printed cannot be pulled, and what to write instead; empty: it can.
func (p *puller) unfit(f printedFile) (why, instead string) {
	s, w, all := p.steppers[f.step], p.works[f.step], p.prints(f.step)
	job, other := s.a.g.parts[f.job], 1-f.stream
	name := printedName(job, f.stream)
	switch {
	case f.left, slices.Contains(job.outputs, name):
		return "transfer_output_files of that node has " + name + ", too", "another name for one of the two"
	case !outputRE.MatchString(name), reservedRE.MatchString(name):
		return fmt.Sprintf("no output of a step can be called %q", name), "letters, digits and _ . + = @ % ~ : -"
	case s.a.g.shape.Joined:
	case job.lands.at(other) == f.at:
		return "its output and its error are two files there", "the same words for both, or two places"
	case s.copies[other] && printedName(job, other) == name:
		return "its output and its error are both files that are called " + name, "another name for one of the two"
	}
	file := "a program that writes it into a file, and transfer_output_files with its name"
	pattern := all.pattern[f.stream]
	same := func(path string) bool { return matched(pattern, path) || matched(path, pattern) }
	switch {
	case s.a.spec.Checkpoint != nil:
		return "when it goes on after an interruption, what it had printed before is lost", file
	case p.flow.Sequences == 1 && all.at[f.stream][f.at] > 1, p.flow.Sequences > 1 && w.jobs > p.flow.Sequences:
		return "several of its jobs print there", "$(Process), or $(JOB), in " + f.stream.command() + " of that node"
	case strings.Contains(pattern, "*") &&
		(slices.ContainsFunc(w.Job.Inputs, func(in v1alpha1.Input) bool { return same(in.Name) }) ||
			slices.ContainsFunc(w.Pull, func(pull v1alpha1.Pull) bool { return same(pull.Path) })):
		if !p.flow.Single() { // each of them has but one name
			p.err = fmt.Errorf("what the nodes of %s print is called as some of their inputs", p.flow.Steps[f.step].Name)
			return "", ""
		}
		return "it has inputs of such names, too", "another name in " + f.stream.command() + " of that node"
	}
	return "", ""
}

// copy has a step leave what it prints, pulls that, and returns the line of the script that gives it its name.
func (p *puller) copy(f printedFile, name string) string {
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
	pattern := p.prints(f.step).pattern[f.stream]
	return p.from(f.step, pattern, f.job, path.Base(f.at), name)
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
