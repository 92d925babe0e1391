package submitfile

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Expansion is what a file comes to.
type Expansion struct {
	Statements []*Statement
	Clusters   []Cluster
	// Asked has the macros, by their names in lower case, whose values decide what the statements are: in conditions,
	// names, included files and queue statements.
	Asked map[string]bool
	// why condor_submit would not take it, or cannot be followed; then there are no jobs after that
	Problems []Problem
	Warnings []Problem
}

// reader is a walk through a file.
type reader struct {
	env       Env
	file      string
	macros    macros
	ifs       conditions
	sequence  int // of the statement
	out       *Expansion
	jobs      int   // of the cluster that is being made
	head      *Jobs // of its first job
	appended  bool
	depth     int
	included  int
	last      string // executable of the last queue statement
	statement *Statement
}

// maxDepth is condor_submit's for included files.
const maxDepth = 20

// What a file comes to with those that it includes: a few files could include each other without end.
const (
	maxStatements = 100_000
	maxIncluded   = 1000
)

// Expand does what the statements say, until the first one that condor_submit refuses.
func (f *File) Expand(env Env) *Expansion {
	r := &reader{env: env, file: f.name, macros: macros{}, out: &Expansion{Asked: map[string]bool{}}}
	if err := r.outside(env.Before); err != nil {
		r.problem(Position{File: f.name}, err)
	} else if at, err := r.walk(f); err != nil {
		r.problem(at, err)
	}
	for i := len(r.out.Statements) - 1; i >= 0 && r.out.Statements[i].Kind != Queue &&
		r.out.Statements[i].Kind != Row; i-- {
		r.out.Statements[i].After = true
	}
	return r.out
}

func (r *reader) problem(at Position, err error) {
	r.out.Problems = append(r.out.Problems, Problem{at, err.Error()})
}

func (r *reader) warn(at Position, format string, args ...any) {
	r.out.Warnings = append(r.out.Warnings, Problem{at, fmt.Sprintf(format, args...)})
}

// outside takes the statements of Env.
func (r *reader) outside(lines []string) error {
	here := r.statement
	defer func() { r.statement = here }()
	for _, text := range lines {
		r.statement = &Statement{Position: Position{File: r.file}, Text: text}
		if err := r.do(Position{File: r.file}, text); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	return nil
}

// walk takes the lines of a file; an error belongs to the position.
func (r *reader) walk(f *File) (Position, error) {
	for i := 0; i < len(f.lines); i++ {
		l := f.lines[i]
		at := Position{f.name, l.number}
		if l.text == "" || strings.HasPrefix(l.text, "#") {
			continue
		}
		used, err := r.take(f, i, at)
		if err != nil {
			if inner, is := errors.AsType[Problem](err); is {
				return inner.Position, errors.New(inner.Text)
			}
			return at, err
		}
		i += used
	}
	if len(r.ifs) > 0 && r.depth == 0 {
		return Position{f.name, f.lines[len(f.lines)-1].number}, errors.New("an if without endif")
	}
	return Position{}, nil
}

// take does one statement, and returns how many further lines belong to it.
func (r *reader) take(f *File, i int, at Position) (int, error) {
	text := f.lines[i].text
	if r.sequence++; r.sequence > maxStatements {
		return 0, fmt.Errorf("expected at most %d statements, with those of included files", maxStatements)
	}
	r.statement = &Statement{Position: at, Text: text, Kind: Conditional}
	r.out.Statements = append(r.out.Statements, r.statement)
	if is, err := r.condition(text); is || err != nil {
		return 0, err
	}
	if !r.ifs.hold() {
		r.statement.Kind, r.statement.Skipped = Set, true
		return 0, nil
	}
	if len(r.ifs) > 0 {
		text = strings.TrimPrefix(text, ":")
	}
	if rest, is := queueArguments(text); is {
		return r.queue(f, i, rest)
	}
	if m := textRE.FindStringSubmatch(text); m != nil {
		return r.text(f, i, m[1], m[2])
	}
	return 0, r.do(at, text)
}

var (
	queueRE    = regexp.MustCompile(`(?i)^(queue|iter|iterate)(\s+|$)`)
	textRE     = regexp.MustCompile(`^([^\s=:@]+)\s*@=(\S+)$`)
	settingRE  = regexp.MustCompile(`^([^\s=:]+)\s*([=:])\s*`)
	keywordsRE = regexp.MustCompile(`(?i)^@?(include|use|error|warning)((?:\s+[^:=]*)?):\s*`)
)

// queueArguments returns what follows the word queue.
func queueArguments(text string) (string, bool) {
	word := queueRE.FindString(text)
	if word == "" || strings.HasPrefix(text[len(word):], "=") {
		return "", false
	}
	return text[len(word):], true
}

// text takes NAME @=TAG and the lines up to @TAG.
func (r *reader) text(f *File, i int, name, tag string) (int, error) {
	var lines []string
	for j := i + 1; j < len(f.lines); j++ {
		l := f.lines[j].text
		if l == "@"+tag {
			return j - i, r.set(name, strings.Join(lines, "\n"))
		}
		if l != "" && !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	return 0, fmt.Errorf("expected a line @%s that ends the value of %s, found the end of the file", tag, name)
}

// do takes a statement that is no conditional and no queue statement.
func (r *reader) do(at Position, text string) error {
	if m := keywordsRE.FindStringSubmatch(text); m != nil {
		return r.keyword(strings.ToLower(m[1]), trim(m[2]), trim(text[len(m[0]):]), at)
	}
	m := settingRE.FindStringSubmatch(text)
	switch {
	case m == nil:
		return errors.New("expected COMMAND = VALUE, +ATTRIBUTE = EXPRESSION, queue, if, include or a comment")
	case strings.EqualFold(m[1], "queue"):
		return errors.New("queue takes no =: write queue N")
	case m[2] == ":":
		return errors.New("expected = instead of the colon")
	}
	return r.set(m[1], trim(text[len(m[0]):]))
}

// here is a first job where the reader is.
func (r *reader) here() Job { return Job{Jobs: &Jobs{cluster: 1, statement: r.sequence, reader: r}} }

// expander replaces macros where the reader is: as for a first job.
func (r *reader) expander() *expander {
	find := r.here().lookup
	return newExpander(func(name string) (string, bool) {
		r.out.Asked[strings.ToLower(name)] = true
		return find(name)
	}, r.env)
}

// set defines a macro, a command or an attribute.
func (r *reader) set(name, value string) error {
	expand := r.expander()
	name, err := expand.expand(name)
	if err != nil {
		return err
	}
	r.statement.Kind, r.statement.Name, r.statement.Value = Set, name, value
	key := name
	switch {
	case strings.HasPrefix(name, "+"), strings.HasPrefix(name, "-"):
		r.statement.Kind, r.statement.Name = Attribute, name[1:]
		if name[0] == '-' {
			value = ""
		}
		key = "MY." + name[1:]
	default:
		if attribute, is := attributeName(name); is {
			r.statement.Kind, r.statement.Name = Attribute, attribute
		}
	}
	if !isName(r.statement.Name) {
		return fmt.Errorf(
			"%q cannot be the name of a command, a macro or an attribute: it has letters, digits and _",
			name,
		)
	}
	if value, err = expand.selves(key, value); err != nil {
		return err
	}
	r.statement.Value = value
	r.macros.define(key, definition{r.sequence, value, r.statement})
	return nil
}

// attributeName is that of an attribute which is called MY.NAME.
func attributeName(name string) (string, bool) {
	if len(name) > 3 && strings.EqualFold(name[:3], "MY.") {
		return name[3:], true
	}
	return "", false
}

// keyword takes include, use, error and warning.
func (r *reader) keyword(word, options, value string, at Position) error {
	expand := r.expander()
	switch word {
	case "use":
		return fmt.Errorf("use %s : %s takes a template of the submit machine's configuration: "+
			"write what condor_config_val shows of it", options, value)
	case "error", "warning":
		text, err := expand.expand(value)
		if err != nil {
			return err
		}
		if word == "error" {
			return fmt.Errorf("the file itself says: %s", text)
		}
		r.statement.Kind = Message
		r.warn(at, "the file itself says: %s", text)
		return nil
	}
	r.statement.Kind = Include
	path, err := expand.expand(value)
	if err != nil {
		return err
	}
	return r.include(strings.Fields(strings.ToLower(options)), path)
}

func (r *reader) include(options []string, path string) error {
	need := true
	if len(options) > 0 && strings.HasPrefix(options[0], "ifexist") {
		need, options = false, options[1:]
	}
	var text []byte
	var err error
	command, piped := strings.CutSuffix(path, "|")
	switch {
	case len(options) > 1:
		return fmt.Errorf(
			"include %s keeps what a command printed: include its file instead",
			strings.Join(options, " "),
		)
	case piped, len(options) == 1 && (options[0] == "command" || options[0] == "output"):
		text, err = r.run(trim(command))
	case len(options) == 1:
		return fmt.Errorf("include takes ifexist or command, found %q", options[0])
	default:
		text, err = r.read(path)
		if errors.Is(err, fs.ErrNotExist) && !need {
			r.statement.Skipped = true
			return nil
		}
	}
	if err != nil {
		return err
	}
	file, err := Parse(path, text)
	if err != nil {
		return err
	}
	if r.included++; r.included > maxIncluded {
		return fmt.Errorf("expected at most %d included files", maxIncluded)
	}
	if r.depth++; r.depth >= maxDepth {
		return errors.New("included files nest too deep")
	}
	ifs := r.ifs
	r.ifs = nil
	if at, err := r.walk(file); err != nil {
		return Problem{at, err.Error()}
	}
	if len(r.ifs) > 0 {
		return fmt.Errorf("%s has an if without endif", path)
	}
	r.depth, r.ifs = r.depth-1, ifs
	return nil
}

func (r *reader) read(path string) ([]byte, error) {
	if r.env.ReadFile == nil {
		return nil, fmt.Errorf("%s is another file, and none can be read here", path)
	}
	return r.env.ReadFile(path)
}

func (r *reader) run(command string) ([]byte, error) {
	if r.env.Run == nil {
		return nil, fmt.Errorf("what the command %q prints is needed, and none is run here: "+
			"write its output into a file, and name that", command)
	}
	return r.env.Run(command)
}
