package submit

import (
	"regexp"
	"strings"
)

// ways are those through a part of a regular expression from a place of a text, at worst: ways[n] have n repetitions,
// each of which may end at every later character. Those with more than can be taken are among the last ones.
type ways [6]float64

var (
	oneWay     = ways{1}
	repetition = ways{0, 1}
)

// or are those through one part or the other.
func (w ways) or(other ways) ways {
	for i := range w {
		w[i] = min(w[i]+other[i], endless)
	}
	return w
}

// then are those through one part and then the other.
func (w ways) then(other ways) (all ways) {
	for i, a := range w {
		for j, b := range other {
			n := min(i+j, len(all)-1)
			all[n] = min(all[n]+a*b, endless)
		}
	}
	return all
}

// waysOf reads a pattern of PCRE. It says whether a search for it begins at the first character alone; or what is in it
// that cannot be counted, or that PCRE does not take.
func waysOf(pattern string) (w ways, anchored bool, wrong string) {
	text, anchored := strings.CutPrefix(strings.TrimPrefix(pattern, "(?i)"), "^")
	anything := leading.FindString(text) // which a search does anyway
	r := patternReader{rest: text[len(anything):]}
	w = r.choice()
	switch {
	case r.wrong == "" && r.rest != "":
		r.wrong = "a ) without its ( in a regular expression"
	case anything != "" && r.choices: // of one of them
		w = w.then(repetition)
	}
	return w, anchored && anything == "" && !r.choices, r.wrong
}

var leading = regexp.MustCompile(`^\.\*[?+]?`)

// patternReader reads a pattern from its beginning.
type patternReader struct {
	rest    string
	groups  int  // that are open
	choices bool // the whole pattern is one of several
	wrong   string
}

// choice reads up to the end of a group, or of the pattern.
func (r *patternReader) choice() (w ways) {
	for {
		w = w.or(r.sequence())
		if r.wrong != "" || !r.take("|") {
			return w
		}
		r.choices = r.choices || r.groups == 0
	}
}

func (r *patternReader) sequence() ways {
	w := oneWay
	for r.wrong == "" && r.rest != "" && r.rest[0] != '|' && r.rest[0] != ')' {
		if r.groups == 0 && (r.rest == ".*" || strings.HasPrefix(r.rest, ".*|")) { // nothing makes it end earlier
			r.rest = r.rest[len(".*"):]
			continue
		}
		w = w.then(r.repeated())
	}
	return w
}

// repeated reads what may be repeated, and how often it is.
func (r *patternReader) repeated() ways {
	isGroup := r.rest[0] == '('
	w := r.item()
	if r.wrong != "" {
		return w
	}
	again := repetitions.FindString(r.rest)
	r.rest = r.rest[len(again):]
	switch {
	case again == "":
		return w
	case isGroup && again[0] != '?', repetitions.MatchString(r.rest):
		r.wrong = "a group or a repetition that is repeated in a regular expression"
		return w
	case again[0] == '?':
		return w.or(oneWay)
	case exactly.MatchString(again):
		return w
	}
	return repetition
}

var (
	// repetitions matches how often something is repeated, and whether it takes as much as it can. Any other { is a
	// character.
	repetitions = regexp.MustCompile(`^([*+?]|\{[ \t]*[0-9,][0-9, \t]*\})[?+]?`)
	exactly     = regexp.MustCompile(`^\{[0-9]+\}`)
)

// item reads a group, a choice of characters, or a character.
func (r *patternReader) item() ways {
	switch c := r.rest[0]; {
	case c == '(':
		return r.group()
	case c == '[':
		r.characters()
	case c == '\\':
		r.escape()
	case repetitions.MatchString(r.rest):
		r.wrong = "a repetition of nothing in a regular expression"
	default:
		r.rest = r.rest[1:]
	}
	return oneWay
}

func (r *patternReader) group() ways {
	r.rest = r.rest[len("("):]
	if strings.HasPrefix(r.rest, "*") || strings.HasPrefix(r.rest, "?") && !r.take("?:") {
		r.wrong = "(" + r.rest[:1] + " in a regular expression"
		return oneWay
	}
	r.groups++
	w := r.choice()
	r.groups--
	if r.wrong == "" && !r.take(")") {
		r.wrong = "a ( without its ) in a regular expression"
	}
	return w
}

// characters reads those in brackets. A bracket that is the first of them stands for itself, as does one behind a
// backslash; [:alpha:] is of several.
func (r *patternReader) characters() {
	r.rest = r.rest[len("["):]
	r.take("^")
	for first := true; r.wrong == ""; first = false {
		switch named := named.FindString(r.rest); {
		case r.rest == "":
			r.wrong = "a [ without its ] in a regular expression"
		case named != "":
			r.rest = r.rest[len(named):]
		case r.rest[0] == '\\':
			r.escape()
		case r.rest[0] == ']' && !first:
			r.rest = r.rest[1:]
			return
		default:
			r.rest = r.rest[1:]
		}
	}
}

var named = regexp.MustCompile(`^\[:\^?[a-z]+:\]`)

// escape reads a backslash and what is behind it.
func (r *patternReader) escape() {
	const letters = "dDwWsSbBAzZtnrf"
	switch {
	case len(r.rest) == 1:
		r.wrong = "a regular expression that ends in a backslash"
	case isAlnum(r.rest[1]) && !strings.Contains(letters, r.rest[1:2]):
		r.wrong = r.rest[:2] + " in a regular expression"
	default:
		r.rest = r.rest[2:]
	}
}

// take reads a text, if it comes next.
func (r *patternReader) take(text string) (is bool) {
	r.rest, is = strings.CutPrefix(r.rest, text)
	return is
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
