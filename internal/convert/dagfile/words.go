package dagfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const blanks = " \t"

// cut takes the first word off.
func cut(s string) (word, rest string) {
	s = strings.TrimLeft(s, blanks)
	if i := strings.IndexAny(s, blanks); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// words takes a statement apart.
type words struct {
	at   Place
	rest string
}

func (w *words) errorf(format string, args ...any) error {
	return &Error{w.at, fmt.Sprintf(format, args...)}
}

// next is the next word, which what describes.
func (w *words) next(what string) (string, error) {
	var word string
	if word, w.rest = cut(w.rest); word == "" {
		return "", w.errorf("%s is missing", what)
	}
	return word, nil
}

// path is the next word, a file or a directory, whose quotes are taken off.
func (w *words) path(what string) (string, error) {
	quoted, ok := strings.CutPrefix(w.rest, `"`)
	if !ok {
		return w.next(what)
	}
	name, rest, ok := strings.Cut(quoted, `"`)
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], blanks) {
		return "", w.errorf("%s has no closing quote, or something follows it without a blank", what)
	}
	if name == "" {
		return "", w.errorf("%s is empty", what)
	}
	w.rest = strings.TrimSpace(rest)
	return name, nil
}

// number is the number that the next word begins with, as DAGMan reads it.
func (w *words) number(what string, low, high int) (int, error) {
	word, err := w.next(what)
	if err != nil {
		return 0, err
	}
	digits := 0
	for digits < len(word) && (word[digits] >= '0' && word[digits] <= '9' || digits == 0 &&
		strings.ContainsAny(word[:1], "+-")) {
		digits++
	}
	n, err := strconv.ParseInt(word[:digits], 10, 64)
	if err != nil || n < int64(low) || n > int64(high) {
		bounds := fmt.Sprintf("a whole number from %d to %d", low, high)
		switch {
		case low == math.MinInt32:
			bounds = "a whole number"
		case high == math.MaxInt32:
			bounds = fmt.Sprintf("a whole number, %d or more", low)
		}
		return 0, w.errorf("%s is %s, not %s", what, bounds, word)
	}
	return int(n), nil
}

// option takes the next word off if it is that one.
func (w *words) option(word string) bool {
	next, rest := cut(w.rest)
	if !strings.EqualFold(next, word) {
		return false
	}
	w.rest = rest
	return true
}

// end says that nothing may follow.
func (w *words) end() error {
	if w.rest != "" {
		return w.errorf("%s is unexpected here", w.rest)
	}
	return nil
}

// vars reads name="value" pairs.
func (w *words) vars() ([]Var, error) {
	var out []Var
	appended := w.option("APPEND")
	if !appended {
		w.option("PREPEND")
	}
	for w.rest != "" {
		name, rest, ok := strings.Cut(w.rest, "=")
		if name = strings.TrimRight(name, blanks); !ok || strings.ContainsAny(name, blanks) {
			return nil, w.errorf(`variables are written as name="value", not as %s`, w.rest)
		}
		if err := w.variable(name); err != nil {
			return nil, err
		}
		if rest = strings.TrimLeft(rest, blanks); rest == "" {
			return nil, w.errorf(`%s has no value: write %s=""`, name, name)
		}
		w.rest = rest
		value, err := w.value(name)
		if err != nil {
			return nil, err
		}
		if attr, ok := strings.CutPrefix(name, "+"); ok {
			name = "My." + attr
		}
		out = append(out, Var{w.at, name, value, appended})
	}
	if len(out) == 0 {
		return nil, w.errorf("there are no variables")
	}
	return out, nil
}

func (w *words) variable(name string) error {
	bare := strings.TrimPrefix(name, "+")
	if strings.IndexFunc(bare, func(r rune) bool { return !letter(r) }) >= 0 || bare == "" {
		return w.errorf("the variable's name must be letters, digits, _ and ., perhaps with a + before it, not %q",
			name)
	}
	if len(bare) >= 5 && strings.EqualFold(bare[:5], "queue") {
		return w.errorf("the name of a variable must not begin with queue: rename %s", name)
	}
	if strings.HasPrefix(name, "APPEND") || strings.HasPrefix(name, "PREPEND") {
		return w.errorf("DAGMan 23 takes the beginning of %s for the option: choose another name", name)
	}
	return nil
}

func letter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.'
}

// value takes a value off, in double quotes or as only 25 takes it: in single ones, or without.
func (w *words) value(name string) (string, error) {
	quote := w.rest[0]
	if quote != '"' && quote != '\'' {
		var value string
		if value, w.rest = cut(w.rest); strings.ContainsAny(value, `"'\=`) {
			return "", w.errorf(`quote the whole value of %s: %s="..."`, name, name)
		}
		return value, nil
	}
	var b strings.Builder
	for i := 1; i < len(w.rest); i++ {
		switch c := w.rest[i]; {
		case c == '\\' && i+1 < len(w.rest):
			i++
			b.WriteByte(w.rest[i])
		case c != quote:
			b.WriteByte(c)
		default:
			rest := w.rest[i+1:]
			if rest != "" && !strings.ContainsAny(rest[:1], blanks) {
				return "", w.errorf("write a blank after the value of %s: DAGMan 23 and 25 read %s differently", name,
					w.rest)
			}
			w.rest = strings.TrimSpace(rest)
			return b.String(), nil
		}
	}
	return "", w.errorf("the value of %s has no closing quote", name)
}
