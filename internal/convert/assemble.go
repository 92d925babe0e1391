package convert

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/submitfile"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// assemble makes the objects.
func (c *converter) assemble(groups []*group) Result {
	var r Result
	for i, g := range groups {
		name := c.name
		if len(groups) > 1 {
			name += "-" + strconv.Itoa(i+1)
		}
		job := v1alpha1.HTCJob{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: g.shape.Spec,
		}
		c.bundles = newBundler(c.env)
		a := assembly{c: c, g: g, spec: &job.Spec, values: map[string][]string{}}
		a.make()
		a.items()
		r.HTCJobs = append(r.HTCJobs, job)
		r.ConfigMaps = append(r.ConfigMaps, c.bundles.configMaps(name))
	}
	c.programFields(r.HTCJobs)
	r.notes = c.notes(groups)
	return r
}

// programFields says where the program and its words are, if no HTCJob has a script.
func (c *converter) programFields(jobs []v1alpha1.HTCJob) {
	if slices.ContainsFunc(jobs, func(job v1alpha1.HTCJob) bool { return job.Spec.Script.Executable == "" }) {
		return
	}
	for by, l := range c.lines {
		if l.field == "spec.script.source" {
			if l.field = "spec.script.executable"; canonical(by.Name) == "arguments" {
				l.field = "spec.script.args"
			}
			c.lines[by] = l
		}
	}
}

// assembly makes one HTCJob.
type assembly struct {
	c      *converter
	g      *group
	spec   *v1alpha1.HTCJobSpec
	names  []string            // of the items' variables, in the order of their use
	values map[string][]string // of each, for each job
	before []string            // lines of the script before the program is run
	places bool                // lines of it give inputs their names, or remove some
	moved  []string            // words for inputs that it has given names that HTCondor does not know as inputs
	rename map[string]string   // of variables
	copies streams             // what steps after pull of what the jobs print

	crowded bool // the jobs have too many inputs together, and each of them has not
}

func (a *assembly) make() {
	image := a.c.options.Image
	if image == "" {
		image = a.spec.Script.Image
	}
	if image == "" {
		a.c.asks("executable", "the file names no image, and every job runs in one", "--image IMAGE")
		a.c.refused = true
	}
	a.spec.Script.Image, a.spec.Script.Command = image, "sh"
	a.spec.HTCOpts = strings.Join(a.g.shape.Options, "\n")
	a.environment()
	program, name := "", a.programs()
	if name == nil {
		program = a.program()
	}
	arguments := a.arguments()
	stdin := ""
	if a.g.parts[0].stdin != "" {
		stdin = " < " + a.phrase("STDIN", func(p parts) string { return p.stdin })
	}
	a.inputs()
	if name != nil {
		program = "./" + a.phrase("PROGRAM", name)
		a.before = append(a.before, "chmod +x "+program)
	}
	a.outputs()
	a.landing()
	a.onNodes()
	if executable := a.asItIs(program, arguments, stdin); executable != "" {
		a.spec.Script.Command, a.spec.Script.Executable = "", executable
		return
	}
	run := strings.TrimRight(program+arguments, " ") + stdin + a.copies.redirected(standardOutput)
	if a.g.shape.Joined {
		run += " 2>&1"
	}
	run += a.copies.redirected(standardError)
	a.spec.Script.Source = strings.Join(append(a.before, a.runs(run)...), "\n") + "\n"
}

// onNodes writes as htcd does what has the number of a node in it.
func (a *assembly) onNodes() {
	if a.spec.Nodes == nil {
		return
	}
	if len(a.g.jobs) > 1 || a.c.counted == nodes {
		a.lose("an HTCJob of several machines is a single job, and a step's jobs have one machine each",
			"an HTCJob for each", "machine_count", "node_count")
		a.c.refused = true
	}
	for i, word := range a.spec.Script.Args {
		a.spec.Script.Args[i] = strings.ReplaceAll(word, submitfile.Node, "{{node}}")
	}
	for _, v := range a.g.parts[0].env {
		if strings.Contains(v.Value, submitfile.Node) {
			a.lose(
				"a node's number is no part of the environment",
				"HTC_NODE, which each node has",
				"environment",
				"env",
			)
		}
	}
	if l := a.spec.Landing; l != nil { // of node 0, which has what all print
		l.Stdout, l.Stderr = onFirst(l.Stdout), onFirst(l.Stderr)
	}
}

func onFirst(place v1alpha1.LandingPlace) v1alpha1.LandingPlace {
	return v1alpha1.LandingPlace(strings.ReplaceAll(string(place), submitfile.Node, "0"))
}

// runs are the lines that run the program. Where HTCondor brings back what is new, inputs with other names are removed,
// unless the program has changed them. What it has printed becomes a file then, if that is pulled.
func (a *assembly) runs(program string) []string {
	tidies := len(a.moved) > 0 && !a.g.parts[0].named
	renamed := a.renamed()
	if !tidies && a.copies == (streams{}) && len(renamed) == 0 {
		return []string{"exec " + program}
	}
	lines := []string{program, "code=$?"}
	if tidies {
		lines = []string{
			": > /tmp/began", program, "code=$?",
			"for file in " + strings.Join(a.moved, " ") + "; do",
			`  [ "$file" -nt /tmp/began ] || rm -f "$file"`,
			"done",
		}
	}
	return slices.Concat(lines, renamed, a.copied(), []string{"exit $code"})
}

// asks says of the line of a command that somebody has to do something.
func (c *converter) asks(command, words, instead string) {
	for _, s := range c.out.Statements {
		if s.Kind == submitfile.Set && strings.EqualFold(s.Name, command) && !s.Skipped && !s.After {
			c.say(s, Line{Verdict: Asks, Words: words, Instead: instead})
			return
		}
	}
	c.extra = append(c.extra, Line{Position: submitfile.Position{File: c.file}, Verdict: Asks, Words: words,
		Instead: instead})
}

// lose says of a command of the group's first job that something of it is lost.
func (a *assembly) lose(why, instead string, names ...string) {
	if _, by, err := a.g.jobs[0].Value(names...); err == nil && by != nil {
		a.c.say(by, Line{Verdict: Cannot, Words: why, Instead: instead})
		return
	}
	a.c.extra = append(a.c.extra, Line{Position: submitfile.Position{File: a.c.file}, Verdict: Cannot, Words: why,
		Instead: instead})
}

// fileInstead is what to do about a file that cannot be had.
func fileInstead(err error) string {
	if large := noRoom(""); errors.As(err, &large) {
		return "push it to a registry and name it in spec.inputs as artifact, or give its URL (docs/data.md)"
	}
	return missingInstead
}

const missingInstead = "the file, at the place where the conversion runs"

// systemRE matches programs that every machine has: not this one's are meant.
var systemRE = regexp.MustCompile(`^/(usr/)?s?bin/`)

// program is the word that runs the executable.
func (a *assembly) program() string {
	s := a.g.shape
	s.Executable = cmp.Or(a.g.parts[0].program, s.Executable)
	switch {
	case s.Shell != "":
		return "sh -c " + quote(s.Shell)
	case s.Executable == "":
		a.lose("there is no executable, and the image's own entry point is not run",
			"executable = PROGRAM, and transfer_executable = false for one of the image; for condor_submit "+
				"-interactive executable=/bin/sh behind the file's name, and interactive: true in the manifest",
			"arguments", "executable")
		a.c.refused = true
		return "false"
	case s.OfImage:
		return quote(s.Executable)
	case systemRE.MatchString(s.Executable):
		a.c.asks(
			"executable",
			"the image's own "+s.Executable+" is run, and not this machine's",
			"see that the image has it",
		)
		return quote(s.Executable)
	}
	in, err := a.file(s.Executable, "executable")
	if err != nil {
		a.lose(err.Error(), fileInstead(err)+"; transfer_executable = false if the image has it", "executable")
		return quote("./" + path.Base(s.Executable))
	}
	target := path.Base(s.Executable)
	if slices.ContainsFunc(a.g.parts, func(p parts) bool { return clashes(p, target, s.Executable) }) {
		target = "program-" + target
	}
	name := a.input(in, target)
	a.put(quote(name), target)
	a.before = append(a.before, "chmod +x "+quote("./"+target))
	a.wants(func(p parts) []wanted { return without(p.inputs, wanted{source: s.Executable, target: target}) })
	return quote("./" + target)
}

// programs makes the jobs' programs inputs of theirs, if they differ, and says what they are called then.
func (a *assembly) programs() func(parts) string {
	if !slices.ContainsFunc(a.g.parts, func(p parts) bool { return p.program != a.g.parts[0].program }) {
		return nil
	}
	prefix := ""
	if slices.ContainsFunc(a.g.parts, func(p parts) bool { return clashes(p, path.Base(p.program), p.program) }) {
		prefix = "program-"
	}
	name := func(p parts) string { return prefix + path.Base(p.program) }
	a.wants(func(p parts) []wanted {
		program := wanted{source: p.program, target: name(p)}
		return append([]wanted{program}, without(p.inputs, program)...)
	})
	return name
}

// wants changes the inputs of all jobs.
func (a *assembly) wants(inputs func(parts) []wanted) {
	for i, p := range a.g.parts {
		a.g.parts[i].inputs = inputs(p)
	}
	a.g.marked.inputs = inputs(a.g.marked)
}

// without are the inputs but for the program.
func without(inputs []wanted, program wanted) []wanted {
	return slices.DeleteFunc(slices.Clone(inputs), func(w wanted) bool {
		return path.Clean(w.source) == path.Clean(program.source) && w.target == program.target
	})
}

// executableRE matches what the API takes.
var executableRE = regexp.MustCompile(`^/?[A-Za-z0-9_][A-Za-z0-9_.+=@%~-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@%~-]*)*$`)

// asItIs is the program, if nothing comes before it, and its arguments are those of the spec: it needs no shell then.
func (a *assembly) asItIs(program, arguments, stdin string) string {
	words, local := strings.CutPrefix(program, "./")
	before := 0
	if local {
		before = 1 // which makes it executable
	}
	if a.c.counted == nodes || !local && !strings.HasPrefix(program, "/") || !executableRE.MatchString(words) ||
		len(words) > 512 || len(a.before) != before || stdin != "" || a.g.shape.Joined ||
		arguments != "" && arguments != ` "$@"` {
		return ""
	}
	return words
}

// clashes reports whether a job wants another file under this name.
func clashes(p parts, target, source string) bool {
	return slices.ContainsFunc(p.inputs, func(w wanted) bool {
		return w.target == target && path.Clean(w.source) != path.Clean(source)
	})
}

var (
	inputRE    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$`)
	notInput   = regexp.MustCompile(`[^A-Za-z0-9_.+-]+`)
	notVarName = regexp.MustCompile(`[^A-Za-z0-9_]+`)
)

// input adds an input and returns its name, which is the one that is wanted, if that can be.
func (a *assembly) input(in v1alpha1.Input, target string) string {
	in.Name = target
	if !inputRE.MatchString(target) || reservedRE.MatchString(target) {
		in.Name = "in-" + strings.TrimLeft(notInput.ReplaceAllString(target, "-"), ".-+")
		in.Name = in.Name[:min(len(in.Name), 100)]
	}
	stem := in.Name
	for i := 2; slices.ContainsFunc(a.spec.Inputs,
		func(other v1alpha1.Input) bool { return other.Name == in.Name }); i++ {
		in.Name = fmt.Sprintf("%s-%d", stem, i)
	}
	a.spec.Inputs = append(a.spec.Inputs, in)
	return in.Name
}

// put moves an input to where it is wanted.
func (a *assembly) put(name, target string) {
	if name == quote(target) {
		return
	}
	a.places = true
	move := "mv " + name + " " + quote(target)
	if strings.HasPrefix(name, `"$`) {
		move = "[ -z " + name + " ] || " + move
	}
	if dir := path.Dir(target); dir != "." {
		a.before = append(a.before, "mkdir -p "+quote(dir))
	} else {
		a.moved = append(a.moved, quote(target))
	}
	a.before = append(a.before, move)
}

// inputs adds the files of all jobs. Those that some jobs have and others have not are removed where they are not
// wanted.
func (a *assembly) inputs() {
	a.directories()
	if a.each() {
		return
	}
	var targets []string
	sources := map[string][]string{} // of each target
	wants := map[wanted]int{}        // how many jobs
	for _, p := range a.g.parts {
		for _, w := range p.inputs {
			if wants[w]++; wants[w] == 1 {
				if sources[w.target] == nil {
					targets = append(targets, w.target)
				}
				sources[w.target] = append(sources[w.target], w.source)
			}
			if len(a.spec.Inputs)+len(wants) > a.mostInputs() {
				a.lose(fmt.Sprintf("the jobs have more than %d input files together", a.mostInputs()),
					"an archive of them, or URLs that the program fetches", "transfer_input_files", "input")
				a.crowded = !slices.ContainsFunc(a.g.parts, func(p parts) bool {
					return len(a.spec.Inputs)+len(p.inputs) > a.mostInputs()
				})
				return
			}
		}
	}
	staged := map[wanted]string{} // the inputs' names
	var some []string             // those that not all jobs want
	for _, target := range targets {
		for _, source := range sources[target] {
			w := wanted{source: source, target: target}
			name, err := a.stage(w, len(sources[target]) > 1, wants[w] == len(a.g.parts))
			if err != nil {
				a.lose(err.Error(), fileInstead(err), "transfer_input_files", "input")
				continue
			}
			staged[w] = name
			if wants[w] < len(a.g.parts) {
				some = append(some, name)
			}
		}
	}
	a.keep(some, staged)
	for _, target := range targets {
		w := wanted{source: sources[target][0], target: target}
		name := quote(staged[w])
		if wants[w] < len(a.g.parts) || len(sources[target]) > 1 {
			if len(sources[target]) == 1 && staged[w] == target {
				continue
			}
			variable := a.variable("INPUT"+strconv.Itoa(len(a.names)+1), func(i int) string {
				for _, w := range a.g.parts[i].inputs {
					if w.target == target {
						return staged[w]
					}
				}
				return ""
			})
			name = `"${` + variable + `}"`
		}
		if name != "''" {
			a.put(name, target)
		}
	}
}

// file is the source of an input that all jobs have: what ConfigMaps have no room for is uploaded.
func (a *assembly) file(path string, names ...string) (v1alpha1.Input, error) {
	ref, err := a.c.bundles.file(path)
	var large noRoom
	if !errors.As(err, &large) || a.c.env.Upload == nil {
		return v1alpha1.Input{ConfigMapKeyRef: ref}, err
	}
	return a.upload(path, string(large)+": it is uploaded", names...)
}

// upload is the source of an input that is uploaded.
func (a *assembly) upload(path, why string, names ...string) (v1alpha1.Input, error) {
	upload, err := a.c.env.Upload(path)
	if err != nil {
		return v1alpha1.Input{}, err
	}
	asks := Line{Position: submitfile.Position{File: a.c.file}, Verdict: Asks, Words: why,
		Instead: "htcd submit does that; before a manifest is applied, htcd upload " + a.c.below(path)}
	if _, by, err := a.g.jobs[0].Value(names...); err == nil && by != nil {
		asks.Position, asks.Text = by.Position, by.Text
	}
	if !slices.Contains(a.c.extra, asks) {
		a.c.extra = append(a.c.extra, asks)
	}
	return v1alpha1.Input{Upload: upload}, nil
}

// stage makes a file an input and returns the input's name. One that not all jobs want is not uploaded: each would get
// it.
func (a *assembly) stage(w wanted, several, all bool) (string, error) {
	var in v1alpha1.Input
	var err error
	switch {
	case urlRE.MatchString(w.source):
		in.URL = w.source
	case all:
		in, err = a.file(w.source, "transfer_input_files", "input")
	default:
		in.ConfigMapKeyRef, err = a.c.bundles.file(w.source)
	}
	if err != nil {
		return "", err
	}
	name := w.target
	if several {
		name = strings.TrimLeft(strings.ReplaceAll(path.Clean(w.source), "/", "-"), ".-")
	}
	return a.input(in, name), nil
}

// keep removes from each job's directory those of these inputs that it does not want.
func (a *assembly) keep(some []string, staged map[wanted]string) {
	if len(some) == 0 {
		return
	}
	variable := a.variable("INPUTS", func(i int) string {
		var names []string
		for _, w := range a.g.parts[i].inputs {
			if name := staged[w]; slices.Contains(some, name) {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	})
	a.places = true
	a.before = append(a.before,
		"for file in "+strings.Join(some, " ")+"; do",
		`  case " ${`+variable+`} " in *" $file "*) ;; *) rm -f "$file" ;; esac`,
		"done")
}

// maxInputs and maxStepInputs are those of the API.
const maxInputs, maxStepInputs = 100, 10

func (a *assembly) mostInputs() int {
	if a.c.counted == nodes {
		return maxStepInputs
	}
	return maxInputs
}

// variable adds one to the items and returns its name, which is another one if that has other values already.
func (a *assembly) variable(name string, value func(i int) string) string {
	if to := a.rename[name]; to != "" {
		name = to
	}
	values := make([]string, len(a.g.jobs))
	for i := range values {
		values[i] = strings.ReplaceAll(value(i), clusterPlace, a.c.name)
	}
	for a.values[name] != nil && !slices.Equal(a.values[name], values) || a.sets(name) {
		name += "_"
	}
	if a.values[name] == nil {
		a.names, a.values[name] = append(a.names, name), values
	}
	return name
}

// sets reports whether the submit file sets a variable of this name.
func (a *assembly) sets(name string) bool {
	return slices.ContainsFunc(a.g.parts[0].env, func(e submitfile.Variable) bool { return e.Name == name })
}

// stepVariable matches those that htcd sets in each node, and those that the script's own shell would act upon.
var stepVariable = regexp.MustCompile(`^(jobid|outpath|registry|(pull|push)_tag|PATH|IFS|LD_.*)$`)

// reserved reports whether a variable of an HTCJob, or of a step, cannot have this name.
func reserved(name string) bool {
	return stepVariable.MatchString(name) || submit.CheckVariable(name, "") != nil
}

// shellName is the variable of the environment that has the value of a macro: the job's number, or a variable of its
// item.
func (a *assembly) shellName(macro string) string {
	if macro == "process" && a.numbered() {
		return "HTCPROCID"
	}
	name := notVarName.ReplaceAllString(macro, "_")
	if macro == "process" || macro == "row" || macro == "step" {
		name = strings.ToUpper(name)
	}
	if !nameRE.MatchString(name) || reserved(name) || a.sets(name) {
		name = "ITEM_" + name
	}
	return a.variable(name, func(i int) string { return valueOf(a.g.jobs[i], macro) })
}

// numbered reports whether the jobs have the numbers that they have in HTCondor.
func (a *assembly) numbered() bool {
	for i, job := range a.g.jobs {
		if job.Proc != i {
			return false
		}
	}
	return true
}

func valueOf(job submitfile.Job, macro string) string {
	value, err := job.Expand("$(" + macro + ")")
	if err != nil {
		return ""
	}
	return value
}

// phrase is a word of each job as sh is to read it, by variables if it differs; a new one, called so, if those that
// there are do not do.
func (a *assembly) phrase(name string, word func(parts) string) string {
	value := func(i int) string { return word(a.g.parts[i]) }
	if first, same := a.constant(value); same {
		return quote(first)
	}
	t := parseTemplate(word(a.g.marked))
	for i, p := range a.g.parts {
		if t.fill(func(macro string) string { return valueOf(a.g.jobs[i], macro) }) != word(p) {
			text := func(text string) string {
				if text == "" {
					return ""
				}
				return quote(text)
			}
			pieces := a.around(name, value, text, func(variable string) string { return `"${` + variable + `}"` })
			return strings.Join(pieces, quote(clusterPlace))
		}
	}
	return t.shell(a.shellName)
}

// around are what stands around the cluster's number, which no variable can have, in a value of the jobs: texts, and
// variables of this name. It is one variable if the jobs have that number in different places.
func (a *assembly) around(name string, value func(i int) string, text, variable func(string) string) []string {
	n := strings.Count(value(0), clusterPlace)
	for i := range a.g.jobs {
		if strings.Count(value(i), clusterPlace) != n {
			return []string{variable(a.variable(name, value))}
		}
	}
	pieces := make([]string, n+1)
	for at := range pieces {
		piece := func(i int) string { return strings.Split(value(i), clusterPlace)[at] }
		named := name
		if n > 0 {
			named += "_" + strconv.Itoa(at+1)
		}
		if first, same := a.constant(piece); same {
			pieces[at] = text(first)
			continue
		}
		pieces[at] = variable(a.variable(named, piece))
	}
	return pieces
}

// arguments are the words after the program. An HTCJob has them in its args, of which the first may be for the script.
func (a *assembly) arguments() string {
	n := len(a.g.parts[0].words)
	for _, p := range a.g.parts {
		if len(p.words) != n {
			name := a.variable("ARGUMENTS", func(i int) string { return quoteAll(a.g.parts[i].words) })
			a.before = append(a.before, `eval "set -- ${`+name+`}" # the words differ in number`)
			return ` "$@"`
		}
	}
	word := func(p parts, at int) string {
		if at < len(p.words) {
			return p.words[at]
		}
		return ""
	}
	if n == 0 {
		return ""
	}
	if a.c.counted != nodes && n < maxArgs && !a.meansMore() {
		for at := range n {
			a.spec.Script.Args = append(a.spec.Script.Args, a.text("ARG"+strconv.Itoa(at+1), word(a.g.marked, at),
				func(i int) string { return word(a.g.parts[i], at) }))
		}
		return ` "$@"`
	}
	var b strings.Builder
	for at := range n {
		b.WriteString(" " + a.phrase("ARG"+strconv.Itoa(at+1), func(p parts) string { return word(p, at) }))
	}
	return b.String()
}

// maxArgs is that of the API.
const maxArgs = 1000

// placeRE matches what htcd would replace in an argument.
var placeRE = regexp.MustCompile(`\{\{(item\.|(proc|node)\}\})`)

// meansMore reports whether htcd would not take the words of some job as they are.
func (a *assembly) meansMore() bool {
	return slices.ContainsFunc(a.g.parts, func(p parts) bool {
		return placeRE.MatchString(strings.Join(p.words, "\n")) || len(strings.Join(p.words, " ")) > 30_000
	})
}

// cluster replaces the place of the cluster's number in a word of the shell, which then has it from the script's first
// argument.
func (a *assembly) cluster(word string) string {
	if !strings.Contains(word, clusterPlace) {
		return word
	}
	if !slices.Contains(a.spec.Script.Args, clusterPlace) {
		a.spec.Script.Args = []string{clusterPlace}
		a.before = append(a.before, "cluster=$1", "shift")
	}
	return strings.ReplaceAll(word, clusterPlace, `'"${cluster}"'`)
}

// environment sets variables that all jobs have in common in the spec, and the others in the script.
func (a *assembly) environment() {
	for at, variable := range a.g.parts[0].env {
		value := func(p parts) string {
			if at < len(p.env) {
				return p.env[at].Value
			}
			return ""
		}
		word := a.cluster(a.phrase("VALUE_"+variable.Name, value))
		same := !slices.ContainsFunc(a.g.parts, func(p parts) bool { return value(p) != variable.Value })
		if same && !strings.Contains(variable.Value, clusterPlace) && !reserved(variable.Name) &&
			!isUnfit(variable.Value) {
			if a.spec.Environment == nil {
				a.spec.Environment = map[string]v1alpha1.EnvironmentValue{}
			}
			a.spec.Environment[variable.Name] = v1alpha1.EnvironmentValue(variable.Value)
			continue
		}
		a.before = append(a.before, "export "+variable.Name+"="+word)
	}
}

// outputs names what jobs leave; where it differs from job to job, by a pattern.
func (a *assembly) outputs() {
	p := a.g.parts[0]
	if p.named && len(p.outputs) == 0 {
		a.spec.HTCOpts = strings.TrimPrefix(a.spec.HTCOpts+"\ntransfer_output_files = \"\"", "\n")
		return
	}
	for at := range p.outputs {
		file := p.outputs[at]
		for _, other := range a.g.parts {
			if other.outputs[at] != file {
				file = common(file, other.outputs[at])
			}
		}
		if !slices.ContainsFunc(a.spec.Outputs, func(o v1alpha1.Output) bool { return o.Path == file }) {
			a.spec.Outputs = append(a.spec.Outputs, v1alpha1.Output{Path: file, URL: a.url(at, file)})
		}
	}
	if len(a.spec.Outputs) > maxOutputs {
		a.lose(fmt.Sprintf("an HTCJob has at most %d outputs", maxOutputs), "a directory", "transfer_output_files")
		a.spec.Outputs = a.spec.Outputs[:maxOutputs]
	}
}

// maxOutputs is that of the API.
const maxOutputs = 20

// common is the pattern for a path, or a pattern, and another path: what they begin and end with.
func common(pattern, with string) string {
	head, tail, _ := strings.Cut(pattern, "*")
	if !strings.Contains(pattern, "*") {
		tail = head
	}
	for !strings.HasPrefix(with, head) {
		head = head[:len(head)-1]
	}
	for !strings.HasSuffix(with[len(head):], tail) {
		tail = tail[1:]
	}
	return head + "*" + tail
}

// items says how many jobs there are, and the variables of each.
func (a *assembly) items() {
	n := len(a.g.jobs)
	if len(a.names) == 0 {
		if n > 1 {
			a.c.counted, a.spec.Script.Queue = "spec.script.queue", new(int32(n)) // #nosec G115 -- at most maxJobs
		}
		return
	}
	size := 0
	for _, name := range a.names {
		for _, value := range a.values[name] {
			size += itemSize(name, value)
			if isUnfit(value) {
				a.lose(
					fmt.Sprintf(
						"the value %.60q of %s cannot be a variable's: expected one line of at most 4,096 characters",
						value,
						name,
					),
					"another value",
					"arguments",
					"environment",
				)
				a.c.refused = true
				return
			}
		}
	}
	if !inObject(n, len(a.names), size) || len(a.names) > maxNames {
		a.table()
		return
	}
	a.c.counted = "spec.items"
	for i := range n {
		item := v1alpha1.Item{}
		for _, name := range a.names {
			item[name] = v1alpha1.ItemValue(a.values[name][i])
		}
		a.spec.Items = append(a.spec.Items, item)
	}
}

// table puts the items into a ConfigMap.
func (a *assembly) table() {
	rows := make([][]string, len(a.g.jobs))
	for i := range rows {
		for _, name := range a.names {
			rows[i] = append(rows[i], a.values[name][i])
		}
	}
	from := &v1alpha1.ItemsFrom{}
	if n, err := a.c.bundles.table(a.names, rows, &from.ConfigMapKeyRef); err != nil {
		a.lose(fmt.Sprintf("the variables of the %d jobs have %d bytes, and a ConfigMap holds 1 MiB", len(rows), n),
			"a table that the program reads, by its number in $HTCPROCID; or several submit files", "arguments",
			"environment")
		a.c.refused = true
		return
	}
	a.c.counted, a.spec.ItemsFrom = "spec.itemsFrom", from
}
