package convert

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// Options are what the file does not say.
type Options struct {
	Name  string // of the HTCJob; that of the file when empty
	Image string // instead of the one in the file
	Proxy string // the Secret, or SECRET/KEY, that has the X.509 proxy
	Token string // the same for a token

	// ScriptsInJobs has what DAGMan runs before and after a node's job run in the job.
	ScriptsInJobs bool
}

// Result is what a file has become. There are no HTCJobs if it, or a part of it that counts for all, cannot be
// converted.
type Result struct {
	Name       string // of the HTCJob, or what the names of several begin with
	HTCJobs    []v1alpha1.HTCJob
	Workflow   *v1alpha1.HTCWorkflow // of a DAG file, instead
	ConfigMaps [][]corev1.ConfigMap  // of each HTCJob: its files
	Lines      []Line

	notes []notes // for each HTCJob
}

// Limits of what is made.
const (
	maxHTCJobs = 50
	maxJobs    = 100_000 // of one HTCJob
)

// converter makes HTCJobs of one file.
type converter struct {
	options  Options
	env      Env
	name     string
	file     string
	out      *submitfile.Expansion
	order    map[*submitfile.Statement]int
	lines    map[*submitfile.Statement]Line
	texts    map[submitfile.Position]string // of the statements
	queues   map[submitfile.Position]*submitfile.Jobs
	extra    []Line // about what is no statement
	listings map[string]listing
	bundles  *bundler
	after    []string // settings, as those of VARS APPEND
	refused  bool
	dir      string                      // of a node with DIR, where condor_submit runs
	counted  string                      // the field that says how many jobs there are
	keys     map[*submitfile.Jobs]string // of the shape that all jobs of a queue statement have; empty: they differ

	number int // of the job that is looked at, among all

	// pull says whether an input comes from another step, and what to see to; target is where the job wants it, . for
	// what is in a directory. nil: there are no other steps.
	pull func(at, target string, here bool) (pulled bool, ask Line)
	// unprinted says why an input that a step before prints cannot be pulled, and what to write instead; empty: it can,
	// or it is another file.
	unprinted func(at string) (why, instead string)
}

// nodes is the field for the queue statement of a DAG's node, which is one job of each item.
const nodes = "spec.queue"

// Submit converts a submit description file.
func Submit(file string, text []byte, env Env, options Options) (Result, error) {
	parsed, err := submitfile.Parse(file, text)
	if err != nil {
		return Result{}, err
	}
	c := newConverter(file, parsed, env, options)
	c.counted = "" // of one job
	groups := c.groups()
	var result Result
	if !c.refused {
		result = c.assemble(groups)
	}
	result.Name = c.name
	result.Lines = c.table()
	if c.refused {
		result.HTCJobs, result.ConfigMaps = nil, nil
	}
	return result, nil
}

func newConverter(file string, parsed *submitfile.File, env Env, options Options) *converter {
	c := &converter{
		options: options, env: env, file: file, name: options.Name, out: parsed.Expand(env.Env),
		counted: nodes, after: env.After,
		order: map[*submitfile.Statement]int{}, lines: map[*submitfile.Statement]Line{}, listings: map[string]listing{},
		keys: map[*submitfile.Jobs]string{}, texts: map[submitfile.Position]string{},
		queues: map[submitfile.Position]*submitfile.Jobs{},
	}
	if c.name == "" {
		c.name = kubernetesName(strings.TrimSuffix(path.Base(file), path.Ext(file)))
	}
	for i, s := range c.out.Statements {
		c.order[s] = i
		if _, there := c.texts[s.Position]; !there {
			c.texts[s.Position] = s.Text
		}
	}
	for _, cluster := range c.out.Clusters {
		for _, queue := range cluster.Queues {
			c.queues[queue.Position] = queue
		}
	}
	for _, p := range c.out.Problems {
		c.extra = append(
			c.extra,
			Line{Position: p.Position, Text: c.texts[p.Position], Verdict: Cannot, Words: p.Text},
		)
		c.refused = true
	}
	for _, w := range c.out.Warnings {
		c.extra = append(c.extra, Line{Position: w.Position, Text: c.texts[w.Position], Verdict: Taken,
			Words: "condor_submit warns: " + w.Text, warning: true})
	}
	return c
}

var notName = regexp.MustCompile(`[^a-z0-9.-]+`)

// kubernetesName makes a name of Kubernetes of a file's.
func kubernetesName(text string) string {
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-.")
	if name == "" {
		return "job"
	}
	return strings.Trim(name[:min(len(name), 200)], "-.")
}

// say keeps the worst that is said of a statement.
func (c *converter) say(by *submitfile.Statement, l Line) {
	l.Position, l.Text = by.Position, by.Text
	if _, stands := c.order[by]; !stands { // a command of the queue statement's items
		if l.Verdict != Taken && l.Verdict != Moot && !slices.Contains(c.extra, l) {
			c.extra = append(c.extra, l)
		}
		return
	}
	before, said := c.lines[by]
	if said &&
		(worse(before.Verdict, l.Verdict) || before.Verdict == l.Verdict && (before.Words != "" || l.Words == "")) {
		if before.Verdict == l.Verdict && before.field == "" {
			before.field = l.field
			c.lines[by] = before
		}
		return
	}
	if l.field == "" {
		l.field = before.field
	}
	c.lines[by] = l
}

// group is the jobs of one HTCJob.
type group struct {
	shape  shape
	jobs   []submitfile.Job
	parts  []parts
	marked parts // of the first job, with marks for what differs
}

// groups puts jobs of the same shape together, in the order of their first ones.
func (c *converter) groups() []*group {
	var groups []*group
	byKey := map[string]*group{}
	total := 0
	for _, cluster := range c.out.Clusters {
		for _, queue := range cluster.Queues {
			if total += queue.Len(); total > maxHTCJobs*maxJobs {
				c.refuseAt(
					queue.Position,
					fmt.Sprintf("expected at most %d jobs in all, found %d", maxHTCJobs*maxJobs, total),
					"several submit files",
				)
				return nil
			}
			first := ""
			for i := range queue.Len() {
				c.number = total - queue.Len() + i
				v := c.view(queue.Job(i), false)
				key, constant := "", false
				if i > 0 {
					key, constant = c.constant(queue, first)
				}
				if !constant {
					v.see()
					key = keyOf(v.shape)
				}
				if i == 0 {
					first = key
				}
				p := v.parts()
				if v.failed { // and the others for the same reason, perhaps
					return nil
				}
				key += fmt.Sprint(len(p.outputs), p.named, p.stdin != "", p.program != "", variables(p))
				g := byKey[key]
				if g == nil {
					if constant {
						v.see()
					}
					if len(groups) == maxHTCJobs {
						c.refuseAt(
							queue.Position,
							fmt.Sprintf(
								"the jobs differ in what they request or in other commands than arguments and files, "+
									"in more than %d ways",
								maxHTCJobs,
							),
							"one value for all jobs, or an expression of the job's attributes",
						)
						return nil
					}
					marked := c.view(c.marked(queue), true)
					g = &group{shape: v.shape, marked: marked.parts()}
					byKey[key] = g
					groups = append(groups, g)
				}
				if len(g.jobs) == maxJobs {
					c.refuseAt(
						queue.Position,
						fmt.Sprintf("an HTCJob of a submit file has at most %d jobs", maxJobs),
						"several submit files",
					)
					return nil
				}
				g.jobs, g.parts = append(g.jobs, v.job), append(g.parts, p)
			}
		}
	}
	if len(groups) == 0 && !c.refused {
		at, instead := submitfile.Position{File: c.file}, "queue at the end"
		for _, s := range c.out.Statements {
			if s.Kind == submitfile.Queue && !s.Skipped {
				at, instead = s.Position, "a number above 0; or the files or rows that it names, where the conversion runs"
			}
		}
		c.refuseAt(at, "there is no queue statement that makes a job", instead)
	}
	return groups
}

func variables(p parts) string {
	var names []string
	for _, e := range p.env {
		names = append(names, e.Name)
	}
	return strings.Join(names, ",")
}

func (c *converter) refuseAt(at submitfile.Position, why, instead string) {
	c.extra = append(c.extra, Line{Position: at, Text: c.texts[at], Verdict: Cannot, Words: why, Instead: instead})
	c.refused = true
}

func (c *converter) view(job submitfile.Job, quiet bool) *view {
	if !quiet {
		job = job.With(map[string]string{"cluster": c.name})
	}
	return &view{c: c, job: job, quiet: quiet}
}

// marked is the first job of a queue statement with marks for all values that its jobs differ in.
func (c *converter) marked(queue *submitfile.Jobs) submitfile.Job {
	marks := map[string]string{
		"cluster":   c.name,
		"process":   mark("process"),
		"row":       mark("row"),
		"itemindex": mark("row"),
		"step":      mark("step"),
	}
	for _, name := range queue.Names {
		marks[strings.ToLower(name)] = mark(name)
	}
	return queue.Job(0).With(marks)
}

// constant reports whether all jobs of a queue statement have the same shape, and its key, which is that of the first
// one then.
func (c *converter) constant(queue *submitfile.Jobs, first string) (string, bool) {
	if key, known := c.keys[queue]; known {
		return key, key != ""
	}
	v := c.view(c.marked(queue), true)
	v.see()
	key := keyOf(v.shape)
	if v.failed || key != first {
		key = ""
	}
	c.keys[queue] = key
	return key, key != ""
}

func keyOf(s shape) string {
	text, err := json.Marshal(s)
	if err != nil { // quantities and texts
		return err.Error()
	}
	return string(text)
}

// table has a line for each statement.
func (c *converter) table() []Line {
	lines := c.extra
	later := map[string]bool{}
	for _, setting := range c.after { // as if written after the last line
		name, _, _ := strings.Cut(setting, " = ")
		later[strings.ToLower(name)] = true
	}
	for i := len(c.out.Statements) - 1; i >= 0; i-- {
		s := c.out.Statements[i]
		l, said := c.lines[s]
		if !said {
			l = c.unsaid(s, later[strings.ToLower(s.Name)])
		}
		if s.Kind == submitfile.Set && !s.Skipped {
			later[strings.ToLower(s.Name)] = true
		}
		if queue := c.queues[s.Position]; queue != nil { // its variables replace what is said above it
			for _, name := range queue.Names {
				later[strings.ToLower(name)] = true
			}
		}
		l.Position, l.Text = s.Position, s.Text
		lines = append(lines, l)
	}
	sortLines(lines, c.file)
	return lines
}

// jobsAt says how many jobs a queue statement makes.
func (c *converter) jobsAt(at submitfile.Position) string {
	if queue := c.queues[at]; queue != nil && queue.Len() != 1 {
		return fmt.Sprintf("%d jobs", queue.Len())
	}
	return "one job"
}

// makesJobs reports whether there are jobs at all.
func (c *converter) makesJobs() bool {
	return slices.ContainsFunc(c.out.Clusters, func(cluster submitfile.Cluster) bool {
		return slices.ContainsFunc(cluster.Queues, func(queue *submitfile.Jobs) bool { return queue.Len() > 0 })
	})
}

// unsaid is the line of a statement that no command has had a word for.
func (c *converter) unsaid(s *submitfile.Statement, later bool) Line {
	name := strings.ToLower(s.Name)
	switch {
	case s.Skipped && s.Kind == submitfile.Include:
		return Line{Verdict: Moot, Words: "there is no such file"}
	case s.Skipped:
		return Line{Verdict: Moot, Words: "the other branch"}
	case s.Kind == submitfile.Queue:
		if c.counted == nodes {
			return Line{Verdict: Taken, field: nodes}
		}
		return Line{Verdict: Taken, Words: c.jobsAt(s.Position), field: c.counted}
	case s.Kind != submitfile.Set && s.Kind != submitfile.Attribute:
		return Line{Verdict: Taken}
	case s.After:
		return Line{Verdict: Moot, Words: "nothing is queued after it"}
	case !c.makesJobs():
		return Line{Verdict: Moot, Words: "no job is known that has it"}
	case s.Used:
		return Line{Verdict: Taken, Words: "a macro, whose value stands where it is used"}
	case later:
		return Line{Verdict: Taken, Words: "a line below replaces it"}
	case c.refused:
		return Line{Verdict: Moot, Words: "there is no manifest, for the reasons that other lines have"}
	case rules[name] != nil, aliases[name] != "", others.MatchString(name), s.Kind == submitfile.Attribute:
		return Line{Verdict: Cannot, Words: "no job has it"}
	}
	return Line{Verdict: Moot, Words: "condor_submit warns: nothing uses it, and it is no command", warning: true}
}
