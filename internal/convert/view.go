package convert

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/convert/submitfile"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
)

// shape is what the jobs of one HTCJob have in common.
type shape struct {
	Spec       v1alpha1.HTCJobSpec
	Options    []string // lines of htcopts
	Executable string
	OfImage    bool   // the executable is the image's
	Shell      string // a line of shell instead of an executable
	Joined     bool   // standard error goes where standard output goes
}

// parts are what may differ from job to job.
type parts struct {
	program string   // a file of this machine
	words   []string // arguments
	stdin   string
	env     []submitfile.Variable
	inputs  []wanted
	takes   []string // the names of all inputs, those that are pulled, too
	outputs []string
	named   bool // outputs are named
	lands   lands
	keeps   bool // outputs have places by their paths, and not by their names alone
	renamed []remap
}

// wanted is a file that a job finds in its directory.
type wanted struct {
	source string // path on this machine, or a URL
	target string // path in the job's directory; of a directory, none if what is in it is wanted
	isDir  bool   // as an archive
}

// clusterPlace is what htcd replaces by the cluster's number, which is known once the jobs are sent, in arguments and
// in the places where files land.
const clusterPlace = "{{cluster}}"

// view reads one job.
type view struct {
	c      *converter
	job    submitfile.Job
	quiet  bool // nothing is said: the job has marks for values
	failed bool
	shape  shape
}

func (v *view) say(by *submitfile.Statement, verdict Verdict, words, instead, field string) {
	if v.quiet || by == nil {
		return
	}
	v.c.say(by, Line{Verdict: verdict, Words: words, Instead: instead, field: field})
}

// refuse says that there can be no manifest.
func (v *view) refuse(by *submitfile.Statement, why, instead string) {
	if v.quiet { // marks are no values
		v.failed = true
		return
	}
	v.say(by, Cannot, why, instead, "")
	v.c.refused = true
}

// fail says why a job cannot be known.
func (v *view) fail(by *submitfile.Statement, err error, instead string) {
	if v.failed = true; !v.quiet {
		v.refuse(by, err.Error(), instead)
	}
}

const keptWords = "a job for which it has no value has that of the first one, as HTCondor leaves it"

// value is that of a command, by whichever of its names; an error is told.
func (v *view) value(command string) (string, *submitfile.Statement) {
	value, by, kept, err := v.job.ValueOrFirst(append([]string{command}, spellings[command]...)...)
	if kept && !v.quiet {
		v.c.say(by, Line{Verdict: Taken, Words: keptWords, warning: true})
	}
	if err != nil {
		v.fail(by, err, "the value itself")
		return "", nil
	}
	return v.toldOnly(command, value, by), by
}

func valueOfCommand(job submitfile.Job, command string) (string, *submitfile.Statement, error) {
	return job.Value(append([]string{command}, spellings[command]...)...)
}

// see reads the commands that make the shape.
func (v *view) see() {
	type command struct {
		name string
		by   *submitfile.Statement
	}
	var all []command
	for name, by := range v.job.Commands() {
		all = append(all, command{name, by})
	}
	slices.SortFunc(all, func(a, b command) int {
		if c := v.c.order[a.by] - v.c.order[b.by]; c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	for _, c := range all {
		if c.by.Kind == submitfile.Attribute {
			value, by := v.value(c.name)
			if by == nil {
				by = c.by
			}
			v.differs(value)
			attribute(v, v.inExpression(c.name, value), by)
			continue
		}
		name := canonical(c.name)
		rule := rules[name]
		switch {
		case rule != nil:
		case slices.Contains(inParts, name):
			_, by, err := valueOfCommand(v.job, name)
			if err == nil && by != nil && !strings.EqualFold(by.Name, c.by.Name) {
				v.say(c.by, Moot, by.Name+" says it, too, and counts", "", "")
			}
			continue
		case tokenRights.MatchString(name):
			rule = rightsOfToken
		case others.MatchString(name):
			rule = nothingFor(name)
		case htcopts.CustomRequest.MatchString(name):
			rule = customRequest
		default:
			continue // a macro
		}
		switch value, by := v.value(name); {
		case by != nil && !strings.EqualFold(by.Name, c.by.Name):
			v.say(c.by, Moot, by.Name+" says it, too, and counts", "", "")
		case by != nil:
			if !slices.Contains(besideShape, name) {
				v.differs(value)
			}
			if slices.Contains(expressions, name) {
				value = v.inExpression(name, value)
			}
			rule(v, value, by)
		case c.by.Value == "":
			v.say(c.by, Moot, "it has no value", "", "")
		}
	}
}

// inExpression is the value of a command with the job's own attribute for $(Cluster), unless that stands in a text.
func (v *view) inExpression(command, value string) string {
	const attribute = "ClusterId"
	job := v.job.With(map[string]string{"cluster": attribute})
	with, _, err := valueOfCommand(job, command)
	if err != nil || with == value {
		return value
	}
	x, err := classad.ParseExpr(with)
	if err != nil || !classad.Walk(x, func(x classad.Expr) bool {
		l, is := x.(*classad.Literal)
		if !is {
			return true
		}
		text, _ := l.Value.Str()
		return !strings.Contains(text, attribute)
	}) {
		return value
	}
	return with
}

// besideShape are commands with rules whose values are in parts, or nowhere.
var besideShape = []string{"output", "error", "log", "transfer_output_remaps"}

// differs takes note that the jobs have other values of a command that makes the shape: not every value stands in it.
func (v *view) differs(value string) {
	v.failed = v.failed || v.quiet && strings.Contains(value, markOpen)
}

// parts reads the commands whose values may differ from job to job.
func (v *view) parts() parts {
	var p parts
	if value, _ := v.value("executable"); v.sends(value) {
		p.program = value
	}
	job := v.job
	if v.c.counted != nodes {
		v.job = job.With(map[string]string{"cluster": clusterPlace})
	}
	if value, by := v.value("arguments"); by != nil {
		v.unknown(value, by)
		words, err := submitfile.Arguments(value)
		if err != nil {
			v.fail(by, err, "words as the manual of condor_submit has them")
		} else {
			v.say(by, Taken, "", "", "spec.script.source")
		}
		p.words = words
	}
	p.env = v.environment()
	v.job = job.With(map[string]string{"cluster": clusterPlace})
	lands := v.lands()
	v.job = job
	dir, by := v.value("initialdir")
	v.say(
		by,
		Taken,
		"files of this machine are found there, and get-output puts files there, below its directory",
		"",
		"",
	)
	lands.dir = v.c.below(dir)
	p.lands = lands
	if value, by := v.value("input"); by != nil && value != "/dev/null" {
		p.stdin = path.Base(value)
		p.takes = append(p.takes, p.stdin)
		v.say(by, Taken, "", "", "spec.inputs")
		p.inputs = append(p.inputs, v.c.wants(v.quiet, by, dir, value, false)...)
	}
	keep, by := v.value("preserve_relative_paths")
	relative := by != nil && !isFalse(keep)
	p.keeps = relative
	for _, command := range []string{"transfer_input_files", "public_input_files"} {
		if value, by := v.value(command); by != nil {
			v.say(by, Taken, "", "", "spec.inputs")
			for _, source := range commas(value) {
				p.takes = append(p.takes, path.Base(source))
				p.inputs = append(p.inputs, v.c.wants(v.quiet, by, dir, source, relative)...)
			}
		}
	}
	if value, by := v.value("transfer_output_files"); by != nil {
		p.outputs, p.named = outputsOf(v, value, by)
	}
	return p
}

func commas(value string) []string {
	var all []string
	for part := range strings.SplitSeq(strings.Trim(value, `"`), ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

var (
	outputRE = regexp.MustCompile(`^[A-Za-z0-9_` + markOpen + `][A-Za-z0-9_.+=@%~:` + markOpen + markClose +
		`-]*(/[A-Za-z0-9_` + markOpen + `][A-Za-z0-9_.+=@%~:` + markOpen + markClose + `-]*)*$`)
	reservedRE = regexp.MustCompile(`^(script|token|htcd-send|job[.]sh|job[.]sub|` +
		`condor_exec[.]exe|tmp|var|_condor[^/]*)(/|$)`)
)

// outputsOf are the files that are named. They are not if none of them can be: all that is new comes back then, unless
// only files were named that are no output anywhere, such as .empty.
func outputsOf(v *view, value string, by *submitfile.Statement) (all []string, named bool) {
	v.say(by, Taken, "", "", "spec.outputs")
	named = true
	for _, file := range commas(value) {
		file = strings.TrimPrefix(file, "./")
		if directory, is := strings.CutSuffix(file, "/"); is { // HTCondor brings what is in it
			file = directory
			v.say(by, Taken, file+"/ comes as the directory "+file, "look for its files there, or name them", "spec.outputs")
		}
		if !outputRE.MatchString(file) || reservedRE.MatchString(file) {
			instead := "a relative path of letters, digits and _ . + = @ % ~ : -, no part of which begins with a dot"
			if strings.HasPrefix(file, ".") {
				instead += `; or transfer_output_files = "" if nothing else is to be brought back`
			}
			v.say(by, Cannot, "an output must not be called "+file, instead, "")
			named = named && strings.HasPrefix(file, ".") && file != "."
			continue
		}
		all = append(all, file)
	}
	return all, named || len(all) > 0
}

// sends reports whether an executable is a file of this machine that jobs come with, each with its own perhaps. All
// jobs of a step have the same.
func (v *view) sends(executable string) bool {
	if v.c.counted == nodes || executable == "" || systemRE.MatchString(executable) || v.absent(executable) {
		return false
	}
	for _, command := range []string{"transfer_executable", "shell"} {
		value, _, err := valueOfCommand(v.job, command)
		if err != nil || value != "" && (command == "shell" || ofImage(value)) {
			return false
		}
	}
	return true
}

// unknown says that a macro of the machine stays as it is written.
func (v *view) unknown(value string, by *submitfile.Statement) {
	if strings.Contains(value, "$$(") {
		v.say(by, Cannot, "$$(...) is known only once the job has a machine", "what the program itself finds there", "")
	}
}

// environment returns the job's variables: those of the shell that getenv names come first.
func (v *view) environment() []submitfile.Variable {
	var all []submitfile.Variable
	set := func(more []submitfile.Variable) {
		for _, variable := range more {
			i := slices.IndexFunc(all, func(other submitfile.Variable) bool { return other.Name == variable.Name })
			if i < 0 {
				all = append(all, variable)
			} else {
				all[i] = variable
			}
		}
	}
	if first, is := v.job.First(); is { // whose variables HTCondor adds to
		set((&view{c: v.c, job: first, quiet: true}).environment())
	}
	if value, by := v.value("getenv"); by != nil {
		set(v.fromShell(value, by))
	}
	if value, by := v.value("environment"); by != nil {
		v.unknown(value, by)
		more, err := submitfile.Environment(value)
		if err != nil {
			v.fail(by, err, "NAME=VALUE as the manual of condor_submit has them")
		} else {
			v.say(by, Taken, "", "", "spec.environment")
		}
		set(more)
	}
	return slices.DeleteFunc(all, func(variable submitfile.Variable) bool {
		if nameRE.MatchString(variable.Name) {
			return false
		}
		_, by, _ := v.job.Value(append([]string{"environment", "getenv"}, spellings["environment"]...)...)
		v.say(by, Cannot, "the name of a variable has letters, digits and _, not "+variable.Name, "such a name", "")
		return true
	})
}

var nameRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// fromShell returns the variables that getenv names, by names and patterns with *, in any case; those with ! before it
// are excluded.
func (v *view) fromShell(value string, by *submitfile.Statement) []submitfile.Variable {
	var named, excluded []string
	for _, pattern := range strings.FieldsFunc(strings.ToLower(value), func(r rune) bool {
		return strings.ContainsRune(",; \t\r\n", r)
	}) {
		if not, is := strings.CutPrefix(pattern, "!"); is {
			excluded = append(excluded, not)
		} else {
			named = append(named, pattern)
		}
	}
	switch {
	case isFalse(value):
		v.say(by, Moot, "it is the default", "", "")
		return nil
	case len(named) == 0, slices.Contains([]string{"true", "yes", "t", "1"}, strings.ToLower(value)):
		named, none := "getenv = NAME, NAME", "getenv = false"
		if v.c.counted != nodes { // of a DAG file there is nothing to append to
			named, none = "--append '"+named+"'", "--append '"+none+"'"
		}
		v.say(by, Cannot, "all variables of a shell are too much, and some are secrets",
			named+" for those that the program needs, or "+none+" if the image has all that it needs", "")
		return nil
	}
	var all []submitfile.Variable
	var names []string
	for _, setting := range v.c.env.Environ {
		name, content, _ := strings.Cut(setting, "=")
		matches := func(pattern string) bool {
			is, err := path.Match(pattern, strings.ToLower(name))
			return err == nil && is
		}
		if slices.ContainsFunc(named, matches) && !slices.ContainsFunc(excluded, matches) {
			names, all = append(names, name), append(all, submitfile.Variable{Name: name, Value: content})
		}
	}
	words := "none of this shell's variables has such a name"
	if len(names) > 0 {
		words = "the values of this shell stand in spec.environment: " + strings.Join(names, ", ")
	}
	v.say(by, Asks, words, "convert it where the variables are set; whoever may read the HTCJob can read them",
		"spec.environment")
	return all
}

// here reports whether there is such a file on this machine.
func (c *converter) here(name string) bool {
	_, err := c.env.Size(name)
	return err == nil
}

func (c *converter) join(dir, file string) string {
	if dir == "" || path.IsAbs(file) {
		return file
	}
	return dir + "/" + file
}

var urlRE = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)

// inputURL matches what the API takes, items and numbers filled in.
var inputURL = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([A-Za-z0-9._-]+@)?[A-Za-z0-9._:\[\]-]*` +
	`/[A-Za-z0-9._~%+=@:!*/-]*([?][A-Za-z0-9._~%+=@:!*/?&-]*)?$`)

// fetches says what is lost of a URL that the API refuses.
func (c *converter) fetches(by *submitfile.Statement, url string) bool {
	switch {
	case strings.HasPrefix(url, "file:"):
		c.say(by, Line{Verdict: Cannot, Words: url + " is a file of the execute node",
			Instead: "its path in the program, if the container has it there"})
	case !inputURL.MatchString(url):
		c.say(by, Line{Verdict: Cannot, Words: url + " is no URL of letters, digits and _ . ~ % + = @ : ! * - /, " +
			"perhaps with a query (?), and without a password", Instead: "other characters as %XX"})
	default:
		return true
	}
	return false
}

// wants is what a job gets for one name of transfer_input_files: at its relative path, or at the top of its directory.
func (c *converter) wants(quiet bool, by *submitfile.Statement, dir, source string, relative bool) []wanted {
	if urlRE.MatchString(source) {
		if !quiet && !c.fetches(by, source) {
			return nil
		}
		return []wanted{{source: source, target: path.Base(strings.SplitN(source, "?", 2)[0])}}
	}
	target := path.Base(source)
	if clean := path.Clean(source); relative && !path.IsAbs(clean) && clean != ".." &&
		!strings.HasPrefix(clean, "../") {
		target = clean
	} else {
		relative = false
	}
	at := c.join(dir, source)
	if c.unprinted != nil {
		if why, instead := c.unprinted(at); why != "" {
			if !quiet {
				words := at + " is what a node before prints, and " + why
				c.say(by, Line{Verdict: Cannot, Words: words, Instead: instead})
			}
			return nil
		}
	}
	contents := strings.HasSuffix(source, "/") && !relative
	if to := target; c.pull != nil {
		if contents {
			to = "."
		}
		pulled, ask := c.pull(at, to, c.here(at))
		if ask.Words != "" && !quiet {
			c.say(by, ask)
		}
		if pulled {
			return nil
		}
	}
	if quiet {
		return []wanted{{source: at, target: target}}
	}
	files, isDir, err := c.listed(at)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no " + at)
		}
		instead := missingInstead
		if c.pull != nil {
			instead += "; or its name in transfer_output_files of the node that leaves it"
		}
		c.say(by, Line{Verdict: Cannot, Words: err.Error(), Instead: instead})
		return nil
	}
	if !isDir {
		return []wanted{{source: at, target: target}}
	}
	if contents || target == "." || target == ".." {
		target = ""
	}
	directory := wanted{path.Clean(at), target, true}
	if c.env.Upload != nil && c.listings[at].many {
		return []wanted{directory}
	}
	return singly(directory, files)
}

// singly returns the files of a directory, as inputs of their own.
func singly(directory wanted, files []string) []wanted {
	var all []wanted
	for _, f := range files {
		all = append(all, wanted{source: directory.source + "/" + f, target: path.Join(directory.target, f)})
	}
	return all
}

// maxListed is how many files of a directory are inputs of their own.
const maxListed = 20

// listing is what Env.List has said.
type listing struct {
	files []string
	dir   bool
	many  bool // it is better uploaded as an archive
	err   error
}

// listed asks Env.List once for each path.
func (c *converter) listed(at string) ([]string, bool, error) {
	l, known := c.listings[at]
	if !known {
		l.files, l.dir, l.err = c.env.List(at)
		l.many = c.many(at, l.files)
		c.listings[at] = l
	}
	return l.files, l.dir, l.err
}

func (c *converter) many(dir string, files []string) bool {
	if len(files) > maxListed {
		return true
	}
	total := int64(0)
	for _, f := range files {
		n, err := c.env.Size(path.Clean(dir) + "/" + f)
		if err != nil {
			return false
		}
		total += n
	}
	return total > maxBundle
}
