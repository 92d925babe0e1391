package convert

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// A stepper converts the submit file of one step.
type stepper struct {
	*converter
	a     *assembly
	nodes []*dagfile.Node
	moves []*move
	ran   map[dagfile.Place]Line

	copies streams // what steps after pull of what it prints
	prints *prints

	files    map[string][2]int // which job has a file at which of its words
	patterns map[int]string    // of the files at a word
	renames  map[int]string    // patterns for what remaps have renamed
}

// in is the environment as it is in a directory: that of a node with DIR.
func (e Env) in(dir string) Env {
	if dir == "" {
		return e
	}
	at := func(name string) string {
		if path.IsAbs(name) {
			return name
		}
		return path.Join(dir, name)
	}
	there := e
	there.ReadFile = func(name string) ([]byte, error) { return e.ReadFile(at(name)) }
	there.Size = func(name string) (int64, error) { return e.Size(at(name)) }
	there.List = func(name string) ([]string, bool, error) { return e.List(at(name)) }
	there.Glob = func(pattern string) ([]string, error) {
		found, err := e.Glob(at(pattern))
		for i, name := range found {
			if !path.IsAbs(pattern) {
				found[i] = strings.TrimPrefix(name, dir+"/")
			}
		}
		return found, err
	}
	if e.Upload != nil {
		there.Upload = func(name string) (string, error) { return e.Upload(at(name)) }
	}
	if e.Run != nil {
		there.Run = func(command string) ([]byte, error) { return e.Run("cd " + quote(dir) + " && " + command) }
	}
	return there
}

// described is the text of a node's submit description, and the name of the file it stands in. It has the lines that it
// has there.
func (b *dagBuild) described(n *dagfile.Node) (file, text string, err error) {
	if d := n.Description; d != nil {
		return d.File, strings.Repeat("\n", d.Line-1) + d.Text + "queue\n", nil
	}
	file = n.Submit
	if !path.IsAbs(file) {
		file = path.Join(n.Dir, file)
	}
	content, err := b.env.ReadFile(file)
	return file, string(content), err
}

// step converts what the nodes of one step run. With several nodes what differs between them becomes variables. Without
// a puller there are no steps before it.
func (b *dagBuild) step(nodes []*dagfile.Node, p *puller) (*stepper, error) {
	n := nodes[0]
	file, text, err := b.described(n)
	if err != nil {
		b.say(n.Place, Line{Verdict: Cannot, Words: fmt.Sprintf("read %s: %v", file, err),
			Instead: "the submit file, at its place relative to where condor_submit_dag is run"})
		return nil, errRefused
	}
	parsed, err := submitfile.Parse(file, []byte(text))
	if err != nil {
		b.say(n.Place, Line{Verdict: Cannot, Words: err.Error()})
		return nil, errRefused
	}
	env := b.env.in(n.Dir)
	env.Before, env.After = settings(n)
	options := b.options
	options.Name = b.name
	s := &stepper{converter: newConverter(file, parsed, env, options), nodes: nodes}
	s.dir = n.Dir
	if n.Description != nil {
		b.once(s)
	}
	s.first()
	if s.refused {
		b.merge(s.said())
		return nil, errRefused
	}
	b.tries(n, s)
	if p != nil {
		sequence := func() int { return s.number * p.flow.Sequences / len(nodes) }
		s.unprinted = func(at string) (why, instead string) {
			if f, is := p.printed(path.Clean(s.below(at)), sequence()); is {
				return p.unfit(f)
			}
			return "", ""
		}
		s.pull = func(at, target string, here bool) (bool, Line) {
			line, can, ask := p.pull(path.Clean(s.below(at)), target, here, sequence())
			if can {
				s.moves = p.moved(s.moves, line, target, s.number)
			}
			return can, ask
		}
	}
	if len(nodes) > 1 {
		queue, err := together(s.out, differing(nodes))
		if err != nil {
			return nil, err
		}
		s.out.Clusters[0].Queues[0], s.queues[queue.Position] = queue, queue
	}
	groups := s.groups()
	if len(groups) > 1 {
		if len(nodes) == 1 {
			s.refuseAt(groups[1].jobs[0].Position, "the jobs of a step are alike in what they request and in all "+
				"but arguments and files", "a node for each kind of job")
		} else {
			return nil, fmt.Errorf("the nodes differ in more than arguments and files")
		}
	}
	if s.refused {
		b.merge(s.said())
		return nil, errRefused
	}
	spec := groups[0].shape.Spec
	s.bundles = newBundler(s.env)
	s.a = &assembly{c: s.converter, g: groups[0], spec: &spec, values: map[string][]string{}}
	return s, nil
}

// once refuses queue in a description that stands in a DAG file.
func (b *dagBuild) once(s *stepper) {
	queues := 0
	for _, st := range s.out.Statements {
		if st.Kind == submitfile.Queue {
			if queues++; queues > 1 {
				s.refuseAt(st.Position, "a description in a DAG file has no queue of its own, and DAGMan 23 refuses "+
					"it", "a submit file")
			}
		}
	}
}

// first leaves the jobs of the first queue statement: DAGMan reads a submit file until there.
func (s *stepper) first() {
	queued := false
	for _, st := range s.out.Statements {
		switch {
		case !queued:
			queued = st.Kind == submitfile.Queue && !st.Skipped
		case st.Kind == submitfile.Queue:
			s.extra = slices.DeleteFunc(s.extra, func(l Line) bool { return l.Position == st.Position && l.warning })
			s.say(st, Line{Verdict: Moot, Words: "DAGMan queues what the first queue statement says"})
		default:
			st.After = true
		}
	}
	if len(s.out.Clusters) > 0 {
		s.out.Clusters = s.out.Clusters[:1]
		s.out.Clusters[0].Queues = s.out.Clusters[0].Queues[:1]
	}
}

// tryRE finds the number of a node's try.
var tryRE = regexp.MustCompile(`(?i)\$\(RETRY(:[^)]*)?\)`)

// tries says where a job is told how often it was tried, and what is tried again.
func (b *dagBuild) tries(n *dagfile.Node, s *stepper) {
	for _, st := range s.out.Statements {
		if _, said := s.lines[st]; !said && st.Kind == submitfile.Queue && s.jobsAt(st.Position) != "one job" {
			s.say(st, Line{Verdict: Taken, Words: "a job that fails is tried again by itself, and the others go on, " +
				"while DAGMan removes them and runs all of the node again"})
		}
		if canonical(st.Name) == "success_exit_code" && st.Value != "0" && !st.After {
			s.say(st, Line{Verdict: Taken, Words: "a node that ends so has succeeded, while DAGMan 23 takes 0 alone for a " +
				"success", Instead: "leave it out if it is to fail"})
		}
		if n.Retries > 0 && tryRE.MatchString(st.Value) {
			s.say(st, Line{Verdict: Taken, Words: "$(RETRY) stays 0 when a job is tried again",
				Instead: "let the program read the number of its try from the variable HTC_RETRY"})
		}
	}
}

// stepFields are fields of steps whose place is another one than in an HTCJob.
var stepFields = map[string]string{nodes: "spec.steps[].forEach", "spec.retries": "spec.steps[].retries",
	"spec.priority": "spec.steps[].priority"}

// said are the lines of a step's files.
func (s *stepper) said() []Line {
	lines := s.table()
	for i, l := range lines {
		switch field, other := stepFields[l.field]; {
		case l.field == "spec.name":
			lines[i] = Line{Position: l.Position, Text: l.Text, Verdict: Moot, Words: "steps have names"}
		case other:
			lines[i].field = field
		case l.field != "":
			lines[i].field = strings.Replace(l.field, "spec.", "spec.steps[].job.", 1)
		}
	}
	return lines
}

// work finishes a step. Variables of that name have another in this step.
func (s *stepper) work(rename map[string]string) *work {
	// What an assembly has made it adds to, so that each attempt begins anew.
	spec := s.a.g.shape.Spec
	s.bundles = newBundler(s.env)
	a := &assembly{c: s.converter, g: s.a.g, spec: &spec, values: map[string][]string{}, rename: rename,
		copies: s.copies}
	for _, m := range s.moves {
		if m.word != "" {
			a.moved = append(a.moved, m.word)
		}
	}
	a.make()
	moves := a.moves(s.moves)
	s.scripts(a)
	if before := spec.Script.Before; before != nil { // which finds what was pulled at its place, too
		before.Source, moves = moves+before.Source, ""
	}
	copied := a.copiedAs()
	w := &work{jobs: len(a.g.jobs), each: columns{names: a.names}, crowded: a.crowded, copied: copied}
	for i := range a.g.jobs {
		row := make([]string, len(a.names))
		for k, name := range a.names {
			row[k] = a.values[name][i]
		}
		w.each.rows = append(w.each.rows, row)
	}
	job, lost := stepJob(spec)
	for _, field := range lost {
		for by, l := range s.lines {
			if l.field == field {
				s.say(by, Line{Verdict: Cannot, Words: "a step has no such field", Instead: field + " of an HTCJob"})
			}
		}
	}
	job.Script.Source = outcomes(job.Script.Source)
	job.Script.Source = moves + job.Script.Source
	w.StepWork = v1alpha1.StepWork{Job: job, Retries: spec.Retries, Priority: spec.Priority}
	return w
}

// configMaps are those of the step's files. Steps with the same files have the same.
func (s *stepper) configMaps(owner string, others []corev1.ConfigMap) []corev1.ConfigMap {
	for _, m := range s.bundles.configMaps(owner) {
		if !slices.ContainsFunc(others, func(o corev1.ConfigMap) bool { return o.Name == m.Name }) {
			others = append(others, m)
		}
	}
	return others
}
