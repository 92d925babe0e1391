package submit

import (
	"regexp"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

// A search for a regular expression can take a time that grows exponentially with the text in which it looks. HTCondor
// ends it only after millions of steps, some 0.2 s, and makes it for each machine. So a pattern is a text that repeats
// no group, and the steps that all searches of an expression can take at worst are bounded.

// maxSteps is how many steps the searches of an expression may take, with those of what it refers to: some ms. Since a
// machine's text may be longer than unknownText, each counts as leastSteps at least, and as leastRepeated if it repeats
// something.
const (
	maxSteps      = 1 << 21
	leastSteps    = 1 << 12
	leastRepeated = 1 << 17
)

// search is a call that looks for a regular expression.
type search struct {
	choices float64 // ways through the alternatives of the pattern
	repeats int
	in      classad.Expr // what it looks in
}

// unknownText is taken for the length of a text that a machine, or HTCondor, has.
const unknownText = 64

// steps returns how many a search takes at worst in a text of a size: it may begin at each character, and each
// repetition may end at each one after that.
func (s search) steps(size int) int {
	n, steps := float64(size+unknownText), s.choices
	for i := range s.repeats + 1 {
		steps *= n / float64(i+1)
	}
	least := float64(leastSteps)
	if s.repeats > 0 {
		least = leastRepeated
	}
	return int(min(max(steps, least), endless))
}

// searchOf reads a call. Of another function, or one without a pattern, it returns nil; if the pattern can take longer
// than can be bounded, what is wrong with it.
func searchOf(call *classad.Call) (s *search, wrong string) {
	switch strings.ToLower(call.Name) {
	case "regexp", "regexpmember", "stringlist_regexpmember":
	default:
		return nil, ""
	}
	if len(call.Args) < 2 {
		return nil, "" // an error for HTCondor
	}
	for _, option := range call.Args[2:] {
		if text, is := literal(option); !is || strings.ContainsAny(text, "xX") {
			return nil, "a regular expression with an option that is no text, or has an x"
		}
	}
	pattern, is := literal(call.Args[0])
	if !is {
		return nil, "a regular expression that is no text"
	}
	s = &search{in: call.Args[1]}
	if wrong = s.read(pattern); wrong != "" {
		return nil, wrong
	}
	return s, ""
}

func literal(x classad.Expr) (string, bool) {
	for {
		switch inner := x.(type) {
		case *classad.Paren:
			x = inner.X
		case *classad.Literal:
			return inner.Value.Str()
		default:
			return "", false
		}
	}
}

// read counts what can make a search long, and returns what is in the pattern that cannot be counted. Characters in
// brackets count as those outside of them.
func (s *search) read(pattern string) (wrong string) {
	const letters = "dDwWsSbBAzZtnrf" // that may stand behind a backslash
	pattern = strings.TrimPrefix(pattern, "(?i)")
	if !strings.ContainsRune(pattern, '|') {
		pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "^"), ".*") // which a search does anyway
		if !strings.HasSuffix(pattern, `\.*`) {
			pattern = strings.TrimSuffix(pattern, ".*")
		}
	}
	var groups, bars int
	var before byte // what a repetition would repeat, or 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '\\':
			if i++; i == len(pattern) {
				return "a regular expression that ends in a backslash"
			}
			if isAlnum(pattern[i]) && !strings.Contains(letters, pattern[i:i+1]) {
				return `\` + pattern[i:i+1] + " in a regular expression"
			}
			before = c
		case '(':
			rest := pattern[i+1:]
			if strings.HasPrefix(rest, "*") || strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:") {
				return "(" + rest[:1] + " in a regular expression"
			}
			if groups++; strings.HasPrefix(rest, "?:") {
				i += len("?:")
			}
			before = c
		case '|':
			bars++
			before = c
		case '*', '+', '?', '{':
			switch {
			case c == '?' && before == ')': // a choice between the group and nothing
				bars++
			case strings.IndexByte(")*", before) >= 0:
				return "a group or a repetition that is repeated in a regular expression"
			default:
				s.repeats++
			}
			if c == '{' { // a number of times, or a character as any other
				i += len(counts.FindString(pattern[i+1:]))
			}
			if i+1 < len(pattern) && strings.IndexByte("?+", pattern[i+1]) >= 0 { // how much it takes first
				i++
			}
			before = '*'
		default:
			before = c
		}
	}
	// The product of the alternatives of groups is largest when all have the same number. A pattern that is no group
	// counts as one.
	s.choices = 1
	for range groups + 1 {
		s.choices *= 1 + float64(bars)/float64(groups+1)
		s.choices = min(s.choices, endless)
	}
	return ""
}

// counts matches what stands behind the { of a repetition.
var counts = regexp.MustCompile(`^[0-9, ]*}`)

// lengthOf returns that of the texts in an expression, not of the names.
func lengthOf(x classad.Expr) (n int) {
	classad.Walk(x, func(x classad.Expr) bool {
		if l, is := x.(*classad.Literal); is {
			n += len(l.String())
		}
		return true
	})
	return n
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
