package submit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
)

// allowances are what a site allows beyond allow.go and htcopts.Attributes.
type allowances struct {
	named      []string // submit commands and +Attributes
	attributes []string // patterns of attributes
}

func (d Description) allowances() allowances { return allowances{d.Allow, d.Attributes} }

// parseOptions reads an HTCJob's htcopts and returns the submit lines to write. It knows comments, empty lines,
// continued lines, "command = value", "+Attribute = expression" and "MY.Attribute = expression", and refuses everything
// else. Expressions are printed from their parsed form, so that nothing can be smuggled in. allow names further
// commands and +Attributes. Errors are of kind Refused.
func parseOptions(options string, allow allowances) ([]option, error) {
	if len(options) > maxOptions {
		return nil, condor.Refusal("htcopts: expected at most %d KiB, found %d bytes", maxOptions>>10, len(options))
	}
	var os []option
	var wrong refusals
	seen := map[string]bool{}
	for l, err := range logicalLines(options) {
		if err != nil {
			wrong.add(err)
			continue
		}
		if textRE.MatchString(l.text) { // what follows is no line of its own
			wrong.add(
				l.refuse(
					0,
					"found a value of several lines (@=), expected it on one line, or with a backslash at the end of each but the last",
				),
			)
			break
		}
		o, err := l.parse(allow)
		if err != nil {
			wrong.add(err)
			continue
		}
		if other := exclusive[o.key]; seen[other] {
			wrong.add(l.refuse(0, "%s and %s cannot be used together: leave one out", other, o.key))
		}
		seen[o.key] = true
		os = append(os, o)
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	return os, nil
}

// CheckLine returns what is wrong with a line of htcopts at a site that allows all attributes, and these.
func CheckLine(line string, allow ...string) error {
	for l, err := range logicalLines(line) {
		if err == nil {
			_, err = l.parse(allowances{allow, []string{"*"}})
		}
		if err != nil {
			_, words, _ := strings.Cut(err.Error(), ": ") // without its place
			return errors.New(words)
		}
	}
	return nil
}

// refusals are what is wrong with several lines. All are told: the user mends them at once.
type refusals struct {
	told []string
	size int // of told in bytes
	more int
}

// mostTold bounds how many lines an error is about, and longestTold how long it is in bytes unless there is only one:
// it becomes a condition's message.
const (
	mostTold    = 20
	longestTold = 4 << 10
)

func (r *refusals) add(err error) {
	words := err.Error()
	if len(r.told) == mostTold || len(r.told) > 0 && r.size+len(words) > longestTold {
		r.more++
		return
	}
	r.told, r.size = append(r.told, words), r.size+len(words)
}

func (r *refusals) err() error {
	switch {
	case len(r.told) == 0:
		return nil
	case r.more > 0:
		r.told = append(r.told, fmt.Sprintf("and %d more lines that are wrong", r.more))
	}
	return condor.Refusal("%s", strings.Join(r.told, "; "))
}

// option is one submit line in the form to write.
type option struct {
	key   string // a command in lower case, or My.Attribute
	value string
}

func (o option) String() string { return o.key + " = " + o.value + "\n" }

// logicalLine is a line with its continuations joined.
type logicalLine struct {
	text     string
	segments []segment
}

// segment says where a part of the joined text was written.
type segment struct{ off, line, column int }

// refuse returns the error for the offset off in the joined text.
func (l logicalLine) refuse(off int, format string, args ...any) *condor.Error {
	at := l.segments[0]
	for _, s := range l.segments {
		if s.off <= off {
			at = s
		}
	}
	column := at.column + len([]rune(l.text[at.off:off]))
	return condor.Refusal("htcopts, line %d, column %d: %w", at.line, column, fmt.Errorf(format, args...))
}

// logicalLines yields the lines that are neither empty nor comments.
func logicalLines(options string) func(yield func(logicalLine, error) bool) {
	return func(yield func(logicalLine, error) bool) {
		physical := strings.Split(strings.ReplaceAll(options, "\r\n", "\n"), "\n")
		for i := 0; i < len(physical); i++ {
			if t := trim(physical[i]); t == "" || t[0] == '#' {
				if strings.HasSuffix(t, `\`) {
					l := logicalLine{text: physical[i], segments: []segment{{line: i + 1, column: 1}}}
					yield(l, l.refuse(0, "a comment cannot be continued: leave out the backslash at its end"))
					return
				}
				continue
			}
			var l logicalLine
			var text strings.Builder
			space := true // at the end of text
			for {
				part := strings.TrimRight(physical[i], " \t")
				more := strings.HasSuffix(part, `\`)
				part = strings.TrimSuffix(part, `\`)
				indent := len(part) - len(strings.TrimLeft(part, " \t"))
				part = part[indent:]
				if part != "" && !space {
					text.WriteByte(' ')
				}
				l.segments = append(l.segments, segment{off: text.Len(), line: i + 1, column: indent + 1})
				if part != "" {
					text.WriteString(part)
					space = strings.HasSuffix(part, " ")
				}
				if !more {
					break
				}
				i++
				l.text = text.String()
				switch {
				case i == len(physical) || trim(physical[i]) == "":
					yield(l, l.refuse(len(l.text), `found nothing after the backslash, expected the line to go on`))
					return
				case trim(physical[i])[0] == '#':
					indent := len(physical[i]) - len(strings.TrimLeft(physical[i], " \t"))
					l.segments = append(l.segments, segment{off: len(l.text), line: i + 1, column: indent + 1})
					yield(
						l,
						l.refuse(
							len(l.text),
							`found a comment in a line that is continued, expected the line to go on: put the comment above the line`,
						),
					)
					return
				}
			}
			l.text = strings.TrimRight(text.String(), " \t")
			if !yield(l, nil) {
				return
			}
		}
	}
}

func trim(s string) string { return strings.Trim(s, " \t") }

var (
	// macro matches everything condor_submit replaces: $(X), $ENV(X), $Fn(X), $$(X), $$([expr]).
	macro  = regexp.MustCompile(`\$(\$|[A-Za-z_]*[(\[])`)
	keyRE  = regexp.MustCompile(`^(\+|(?i:my)\.)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=([ \t]*)`)
	textRE = regexp.MustCompile(`^(\+|(?i:my)\.)?[A-Za-z_][A-Za-z0-9_]*[ \t]*@=`)
	nameRE = regexp.MustCompile(`^[^ \t=:(]+`)
)

// parse checks one line and returns it in the form to write.
func (l logicalLine) parse(allow allowances) (option, error) {
	if at, what := unplain(l.text); what != "" {
		return option{}, l.refuse(at, "found %s, expected plain text", what)
	}
	if m := macro.FindStringIndex(l.text); m != nil {
		return option{}, l.refuse(
			m[0],
			"found the macro %q, expected its value: macros are not replaced here",
			l.text[m[0]:m[1]],
		)
	}
	first := nameRE.FindString(l.text)
	if hint, ok := keywords[strings.ToLower(first)]; ok &&
		!(strings.EqualFold(first, "error") && keyRE.MatchString(l.text)) {
		return option{}, l.refuse(0, "%q is not allowed: %s", first, hint)
	}
	m := keyRE.FindStringSubmatchIndex(l.text)
	if m == nil {
		return option{}, l.refuse(0, "found %q, expected command = value, +Attribute = expression or a comment", first)
	}
	name, valueAt := l.text[m[4]:m[5]], m[1]
	value := l.text[valueAt:]
	if value == "" {
		return option{}, l.refuse(valueAt, "found the end, expected a value for %s", name)
	}

	write, key := rule(name, m[2] >= 0, allow)
	if write == nil {
		return option{}, l.refuse(m[0], "%s", key)
	}
	if err := short(key, value); err != nil {
		return option{}, l.refuse(valueAt, "%s: %w", name, err)
	}
	written, err := write(value)
	var syntax *classad.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return option{}, l.refuse(
			valueAt+syntax.Offset,
			"%s: found %s, expected %s",
			name,
			syntax.Found,
			syntax.Expected,
		)
	case err != nil:
		return option{}, l.refuse(valueAt, "%s: %w", name, err)
	case strings.HasSuffix(written, `\`):
		return option{}, l.refuse(len(l.text), "found a backslash at the end of %s, expected none", name)
	}
	return option{key: key, value: written}, nil
}

const (
	maxOptions      = 64 << 10 // bytes
	maxValue        = 4 << 10  // bytes
	maxRequirements = 8192     // characters, as in spec.requirements
)

// short limits what one line adds to the ad: the schedd keeps it for every job and evaluates what refers to it.
func short(key, value string) error {
	switch {
	case key == "requirements":
		if n := utf8.RuneCountInString(value); n > maxRequirements {
			return fmt.Errorf("found %d characters, expected at most %d", n, maxRequirements)
		}
	case len(value) > maxValue:
		return fmt.Errorf("found a value of %d bytes, expected at most 4 KiB", len(value))
	}
	return nil
}

// isTag reports whether an attribute, in lower case, is htcd's own.
func isTag(name string) bool {
	return strings.HasPrefix(name, "htcjob") || strings.HasPrefix(name, "htcworkflow") || name == "htcpool" ||
		name == "htcnode"
}

// rule returns which values name may have and the key to write it with. If the allowance is nil, the string is the
// refusal's message instead.
func rule(name string, attribute bool, allow allowances) (allowance, string) {
	command := strings.ToLower(name)
	has := func(list []string, n string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, n) })
	}
	site := func(n string) bool { return has(allow.named, n) && forSite(n) == nil }
	if attribute {
		switch {
		case isTag(command):
			return nil, fmt.Sprintf("the attribute %s is htcd's own", name)
		case has(htcopts.Attributes, name), site("+" + name), byPattern(allow.attributes, name):
			return expression, "My." + name
		}
		if c := commandOf(command); c != "" {
			return nil, fmt.Sprintf("the attribute %s is not allowed: write %s = ...", name, c)
		}
		switch {
		case has(ownedAttributes, name):
			return nil, fmt.Sprintf("the attribute %s is htcd's own", name)
		case !byPattern([]string{"*"}, name):
			return nil, fmt.Sprintf(
				"the attribute %s is not allowed: HTCondor acts upon it, and only the operator of htcd can allow it (--allow-htcopts)",
				name,
			)
		}
		return nil, fmt.Sprintf(
			"the attribute %s is not allowed; docs/htcjob.md lists those that are, and the operator of htcd (--attributes) or of an HTCPool (spec.attributes) can allow it",
			name,
		)
	}
	if a := allowed[command]; a != nil {
		return a, command
	}
	switch {
	case site(name):
		return text, command
	case owned[command] != "":
		return nil, fmt.Sprintf("%s is not allowed: %s", name, owned[command])
	case hint(command) != "":
		return nil, fmt.Sprintf("%s is not allowed: %s", name, hint(command))
	case htcopts.CustomRequest.MatchString(command):
		if c := meant(command); strings.HasPrefix(c, "request_") {
			return nil, fmt.Sprintf(
				"%s is taken for a resource of the pool's own: is %s meant? If the pool has it, the operator of htcd can allow %s (--allow-htcopts)",
				name,
				c,
				command,
			)
		}
		return resource, command
	case has(htcopts.Attributes, name), site("+" + name), byPattern(allow.attributes, name):
		return nil, fmt.Sprintf("%s is no submit command: write +%s = ...", name, name)
	}
	if c := meant(command); c != "" {
		return nil, fmt.Sprintf("the command %s is not allowed: is %s meant?", name, c)
	}
	return nil, fmt.Sprintf("the command %s is not allowed; docs/htcjob.md lists those that are", name)
}

// commandOf returns the allowed command that sets an attribute, such as request_cpus for RequestCpus.
func commandOf(attribute string) string {
	if attribute == "jobprio" {
		return "priority"
	}
	for c := range allowed {
		if strings.ReplaceAll(c, "_", "") == strings.ReplaceAll(attribute, "_", "") {
			return c
		}
	}
	return ""
}
