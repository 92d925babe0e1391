package submitfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of one value while its macros are replaced: macros may refer to each other in a circle, or grow without end.
const (
	maxReplaced = 1000
	maxValue    = 32 << 10
)

// lookup returns a macro's value with its own macros unreplaced.
type lookup func(name string) (value string, defined bool)

// expander replaces macros.
type expander struct {
	lookup lookup
	env    func(name string) (string, bool)
	left   int // how many may still be replaced
	depth  int // of functions whose arguments are being replaced
}

func newExpander(find lookup, env Env) *expander {
	variable := env.Variable
	if variable == nil {
		variable = func(string) (string, bool) { return "", false }
	}
	return &expander{lookup: find, env: variable, left: maxReplaced}
}

// expand replaces all macros of a text but $$(X), which the schedd replaces.
func (e *expander) expand(text string) (string, error) {
	if !strings.Contains(text, "$") {
		return text, nil
	}
	if len(text) > maxValue {
		return "", fmt.Errorf("expected at most %d KiB in a value with macros, found %d bytes", maxValue>>10, len(text))
	}
	for at := 0; ; {
		m, found := nextMacro(text, at)
		if !found {
			return dollars(text), nil
		}
		if strings.EqualFold(m.body, "DOLLAR") && m.function == "" {
			at = m.end
			continue
		}
		e.left-- // before a function replaces macros itself
		value := ""
		if e.left >= 0 {
			var err error
			if value, err = e.value(m); err != nil {
				return "", err
			}
		}
		text, at = text[:m.start]+value+text[m.end:], m.start
		if e.left < 0 || len(text) > maxValue {
			return "", fmt.Errorf("the macro $%s(%s) refers to itself, or grows beyond 32 KiB", m.function, m.body)
		}
		// A macro's value may complete what stands before it: $(A_$(B)).
		at = max(0, strings.LastIndexByte(text[:at], '$'))
		for at > 0 && text[at-1] == '$' {
			at--
		}
		if strings.Contains(text[:at], "$(") {
			at = 0
		}
	}
}

// dollars replaces $(DOLLAR), at last: what it makes is no macro.
func dollars(text string) string {
	var b strings.Builder
	for {
		m, found := nextMacro(text, 0)
		for found && !(m.function == "" && strings.EqualFold(m.body, "DOLLAR")) {
			m, found = nextMacro(text, m.end)
		}
		if !found {
			return b.String() + text
		}
		b.WriteString(text[:m.start] + "$")
		text = text[m.end:]
	}
}

// selves replaces only the macros of this name, as condor_submit does when a macro is defined: a = $(a) more.
func (e *expander) selves(name, text string) (string, error) {
	if len(text) > maxValue { // refused if its macros are asked for
		return text, nil
	}
	for at := 0; ; {
		m, found := nextMacro(text, at)
		if !found {
			return text, nil
		}
		self, _, _ := strings.Cut(m.body, ":")
		if !strings.EqualFold(self, name) || m.function != "" && !isFilename(m.function) {
			at = m.start + 1
			continue
		}
		value, err := e.value(m)
		if err != nil {
			return "", err
		}
		text, at = text[:m.start]+value+text[m.end:], m.start+len(value)
		if e.left--; e.left < 0 || len(text) > maxValue {
			return "", fmt.Errorf("the macro $(%s) grows beyond 32 KiB", name)
		}
	}
}

// macro is $FUNCTION(BODY) in a text; the function is empty in $(BODY).
type macro struct {
	start, end     int
	function, body string
}

// functions are those of condor_submit, besides $F with letters for the parts of a path.
var functions = map[string]bool{
	"ENV":            true,
	"RANDOM_CHOICE":  true,
	"RANDOM_INTEGER": true,
	"CHOICE":         true,
	"SUBSTR":         true,
	"INT":            true,
	"REAL":           true,
	"STRING":         true,
	"EVAL":           true,
	"BASENAME":       true,
	"DIRNAME":        true,
}

func isFilename(function string) bool {
	return strings.HasPrefix(function, "F") && strings.Trim(strings.ToLower(function[1:]), "pnxdqabfwu") == ""
}

// nextMacro finds the first macro that begins at or after an offset. In $(X) and $ENV(X) only names, and after a colon
// a few more characters, are taken for a macro; in functions everything up to the first parenthesis.
func nextMacro(text string, from int) (macro, bool) {
	for from < len(text) {
		i := strings.IndexByte(text[from:], '$')
		if i < 0 {
			break
		}
		start := from + i
		at := start + 1
		double := at < len(text) && text[at] == '$'
		if double {
			at++
		}
		name := at
		for at < len(text) && isNameByte(text[at]) && text[at] != '.' && text[at] != '/' {
			at++
		}
		from = at
		if at == len(text) || text[at] != '(' {
			continue
		}
		m := macro{start: start, function: text[name:at]}
		from = at + 1
		if double || m.function != "" && !functions[m.function] && !isFilename(m.function) {
			continue
		}
		body := text[at+1:]
		end := strings.IndexByte(body, ')')
		if m.function == "" || m.function == "ENV" {
			end = endOfName(body)
		}
		if end < 0 {
			continue
		}
		m.body, m.end = body[:end], at+1+end+1
		return m, true
	}
	return macro{}, false
}

// endOfName returns where the parenthesis closes after NAME or NAME:DEFAULT; -1 if it is none.
func endOfName(body string) int {
	colon := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == ')':
			return i
		case isNameByte(c):
		case c == ':' && !colon:
			colon = true
		case colon && c == '(':
			j := strings.IndexByte(body[i:], ')')
			if j < 0 {
				return -1
			}
			i += j
		case colon && strings.IndexByte(`$ ,\:`, c) >= 0:
		default:
			return -1
		}
	}
	return -1
}

func isNameByte(c byte) bool {
	return c == '_' || c == '.' || c == '/' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isName reports whether a macro can be called so.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// maxNested is how deep functions nest: $INT(a) where a is $INT(b).
const maxNested = 20

var errCircle = errors.New("it refers to itself, or functions nest more than 20 deep")

var errRandom = errors.New(
	"the value would be drawn anew at each conversion: write a value, or let the program draw it",
)

// ofMachine are macros that condor_submit defines, and that differ from machine to machine.
var ofMachine = []string{"opsysandver", "opsysmajorver", "opsysver", "spool"}

// value is what a macro stands for; macros in it are replaced later.
func (e *expander) value(m macro) (string, error) {
	name, fallback, hasFallback := strings.Cut(m.body, ":")
	switch m.function {
	case "":
		value, defined := e.lookup(name)
		if value == "" {
			value = fallback
		}
		if !defined && !hasFallback && slices.Contains(ofMachine, strings.ToLower(name)) {
			return "", fmt.Errorf("$(%s) is that of the machine where condor_submit runs: write the value", name)
		}
		return value, nil
	case "ENV":
		value, set := e.env(name)
		switch {
		case set:
			return value, nil
		case hasFallback:
			return fallback, nil
		}
		return "UNDEFINED", nil
	case "RANDOM_CHOICE", "RANDOM_INTEGER":
		return "", fmt.Errorf("$%s(%s): %w", m.function, m.body, errRandom)
	}
	if e.depth == maxNested {
		return "", errCircle
	}
	e.depth++
	value, err := e.call(m)
	e.depth--
	if err != nil && e.depth > 0 {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("$%s(%s): %w", m.function, m.body, err)
	}
	return value, nil
}
