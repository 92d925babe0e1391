package convert

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// Verdict is what has become of a line.
type Verdict string

// The verdicts.
const (
	Taken  Verdict = "taken"
	Moot   Verdict = "moot"   // it need not be said here
	Asks   Verdict = "asks"   // it depends on what somebody does, or on where the file is converted
	Cannot Verdict = "cannot" // it is lost
)

// Line says what has become of a line of a submit file.
type Line struct {
	submitfile.Position
	Text    string
	Verdict Verdict
	Words   string // taken as what, or why not
	Instead string // what to write, or what somebody has to do
	field   string // of the HTCJob, such as spec.script.image
	warning bool   // condor_submit warns of it, too
}

func (l Line) String() string {
	s := string(l.Verdict)
	if l.Verdict == Taken && l.field != "" {
		s += " as " + l.field
	}
	if l.Words != "" {
		s += ": " + l.Words
	}
	switch {
	case l.Instead == "":
	case l.Verdict == Cannot:
		s += "; instead: " + l.Instead
	default:
		s += "; to do: " + l.Instead
	}
	return strings.ReplaceAll(s, submitfile.Node, "$(Node)")
}

// WriteTable writes what has become of each line; with all false, only of those about which there is something to do or
// to know.
func WriteTable(out io.Writer, lines []Line, all bool) {
	for _, l := range lines {
		if !all && !l.matters() {
			continue
		}
		text := l.Text
		if len(text) > 50 {
			text = strings.ToValidUTF8(text[:47], "") + "..."
		}
		fmt.Fprintf(out, "%s:%d: %s\n    %s\n", l.File, l.Line, strings.ReplaceAll(text, "\n", " "), l)
	}
}

// matters reports whether somebody should read it.
func (l Line) matters() bool {
	return l.Verdict == Cannot || l.Verdict == Asks || l.Instead != "" || l.warning
}

// Lost reports whether something of a file is in no manifest.
func Lost(lines []Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return l.Verdict == Cannot })
}

// worse orders verdicts: several jobs may say different things of one line.
func worse(a, b Verdict) bool {
	order := []Verdict{Moot, Taken, Asks, Cannot}
	return slices.Index(order, a) > slices.Index(order, b)
}

func sortLines(lines []Line, file string) {
	slices.SortStableFunc(lines, func(a, b Line) int {
		if a.File != b.File && (a.File == file || b.File == file) {
			return cmp.Compare(fmt.Sprint(a.File != file), fmt.Sprint(b.File != file))
		}
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}
