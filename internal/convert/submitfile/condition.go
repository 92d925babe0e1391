package submitfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version is the one of condor_submit that conditions see.
var version = [3]int{23, 9, 6}

// branch is an if that is not ended.
type branch struct {
	now    bool // the statements here count
	before bool // an earlier branch counted
	outer  bool // those around it count
	last   bool // else was seen
}

// conditions are the ifs that a statement stands in.
type conditions []branch

func (c conditions) hold() bool { return len(c) == 0 || c[len(c)-1].now && c[len(c)-1].outer }

// condition takes a statement that is if, elif, else or endif; is says whether it was one.
func (r *reader) condition(text string) (is bool, err error) {
	text = strings.TrimPrefix(text, ":")
	word, rest := text, ""
	if i := strings.IndexFunc(text, isSpace); i >= 0 {
		word, rest = text[:i], trim(text[i:])
	}
	top := len(r.ifs) - 1
	switch word = strings.ToLower(word); word {
	case "if":
		b := branch{outer: r.ifs.hold()}
		if b.outer {
			b.now, err = r.test(rest)
		}
		b.before = b.now
		if len(r.ifs) >= 60 {
			return true, errors.New("conditionals nest too deep")
		}
		r.ifs = append(r.ifs, b)
		return true, err
	case "elif", "else":
		if top < 0 {
			return true, fmt.Errorf(
				"%s without an if before it; a queue statement ends the conditional in which it stands",
				word,
			)
		}
		b := &r.ifs[top]
		if b.last {
			return true, fmt.Errorf("%s after else", word)
		}
		b.last = word == "else"
		b.now = !b.before
		if b.now && b.outer && !b.last {
			b.now, err = r.test(rest)
		}
		b.before = b.before || b.now
		return true, err
	case "endif":
		if top < 0 {
			return true, errors.New(
				"endif without an if before it; a queue statement ends the conditional in which it stands",
			)
		}
		r.ifs = r.ifs[:top]
		return true, nil
	}
	return false, nil
}

var (
	versionRE = regexp.MustCompile(`(?i)^version\s*(!?[<=>]=?|!=)\s*v?([0-9]+)[.]([0-9]+)(?:[.]([0-9]+))?$`)
	definedRE = regexp.MustCompile(`(?i)^defined(?:\s+(\S+))?$`)
)

// test decides a condition: a truth value, a number, `defined NAME` or `version >= 8.1`, with ! before it perhaps.
func (r *reader) test(condition string) (bool, error) {
	text := condition
	if strings.Contains(text, "$") {
		var err error
		if text, err = r.expander().expand(text); err != nil {
			return false, err
		}
		if trim(text) == "" {
			return false, nil
		}
	}
	text = trim(text)
	inner := trim(strings.TrimPrefix(text, "!"))
	inverted := inner != text
	if inverted && inner == "" && strings.Contains(condition, "$") {
		return true, nil
	}
	value, err := r.truth(inner)
	if err != nil {
		return false, fmt.Errorf("%q is no condition: %w", condition, err)
	}
	return value != inverted, nil
}

func (r *reader) truth(text string) (bool, error) {
	if value, is := boolean(text); is {
		return value, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f != 0, nil
	}
	if m := versionRE.FindStringSubmatch(text); m != nil {
		return compareVersion(m[1], m[2:]), nil
	}
	if m := definedRE.FindStringSubmatch(text); m != nil {
		return r.defined(m[1])
	}
	return false, errors.New("expected true or false, a number, defined NAME, or version >= X.Y.Z")
}

func boolean(text string) (value, is bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "t":
		return true, true
	case "false", "no", "f":
		return false, true
	}
	return false, false
}

func (r *reader) defined(name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	r.out.Asked[strings.ToLower(name)] = true
	if value, set := r.here().lookup(name); set {
		return value != "", nil
	}
	if slices.Contains(ofMachine, strings.ToLower(name)) {
		return true, nil
	}
	if _, is := boolean(name); is {
		return true, nil
	}
	if _, err := strconv.ParseFloat(name, 64); err == nil {
		return true, nil
	}
	if !isName(strings.ReplaceAll(name, "/", "_")) {
		return false, errors.New("expected the name of a macro after defined")
	}
	return false, nil
}

func compareVersion(operator string, with []string) bool {
	order := 0
	for i, part := range with {
		if n, err := strconv.Atoi(part); err == nil && order == 0 {
			order = version[i] - n
		}
	}
	negated := strings.HasPrefix(operator, "!")
	operator = strings.TrimPrefix(operator, "!")
	holds := order == 0 && strings.Contains(operator, "=") ||
		order < 0 && strings.HasPrefix(operator, "<") || order > 0 && strings.HasPrefix(operator, ">")
	return holds != negated
}
