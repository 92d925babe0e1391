package submit

import (
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

// A search for a regular expression can take a time that grows exponentially with the text in which it looks. HTCondor
// ends it only after millions of steps, some 0.2 s, and makes it for each machine. So a pattern is a text that repeats
// no group (ways.go), and the steps that all searches of an expression can take at worst are bounded.

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
	ways     ways
	anchored bool         // it begins at the first character alone
	in       classad.Expr // what it looks in
}

// unknownText is taken for the length of a text that a machine, or HTCondor, has.
const unknownText = 64

// steps returns how many a search takes at worst in a text of a size: it may begin at each character, and each
// repetition may end at each one after that.
func (s search) steps(size int) int {
	n := float64(size + unknownText)
	places, begins := n, 1
	if s.anchored {
		places, begins = 1, 0
	}
	least, steps := max(leastSteps, n), 0.0
	for repeats, ways := range s.ways {
		if repeats > 0 {
			places *= n / float64(repeats+begins)
			if ways > 0 {
				least = max(least, leastRepeated)
			}
		}
		steps += ways * places
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
	lines := false // ^ is the beginning of any
	for _, option := range call.Args[2:] {
		text, is := literal(option)
		if !is || strings.ContainsAny(text, "xX") {
			return nil, "a regular expression with an option that is no text, or has an x"
		}
		lines = lines || strings.ContainsAny(text, "mM")
	}
	pattern, is := literal(call.Args[0])
	if !is {
		return nil, "a regular expression that is no text"
	}
	s = &search{in: call.Args[1]}
	if s.ways, s.anchored, wrong = waysOf(pattern); wrong != "" {
		return nil, wrong
	}
	s.anchored = s.anchored && !lines
	return s, ""
}

// requested returns the search that condor_submit adds to the requirements for a request whose value is a text: it
// takes that for a regular expression, which the machine's attribute has to match. Of another value it returns nil.
func requested(x classad.Expr) (s *search, wrong string) {
	pattern, is := literal(x)
	if !is {
		return nil, ""
	}
	s = &search{in: &classad.Ref{Scope: "TARGET"}}
	s.ways, s.anchored, wrong = waysOf(pattern)
	return s, wrong
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
