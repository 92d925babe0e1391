package tool

import (
	"strings"

	"htc.cern.ch/htcd/internal/schedd/plaintext"
)

const (
	// keptStderr is how many bytes of the end of a tool's stderr are kept.
	keptStderr = 8 << 10
	// shownLines and shownBytes limit how much of it an error shows.
	shownLines = 30
	shownBytes = 2000
)

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*keptStderr {
		t.b = append(t.b[:0], t.b[len(t.b)-keptStderr:]...)
	}
	return len(p), nil
}

// lines returns the last lines, without empty ones and surrounding blanks, fit to be shown.
func (t *tail) lines() []string {
	var lines []string
	for l := range strings.Lines(string(t.b)) {
		if l = plaintext.Line(strings.Join(strings.Fields(l), " ")); l != "" {
			lines = append(lines, l)
		}
	}
	return lines[max(0, len(lines)-shownLines):]
}

// words returns the last lines joined into one.
func (t *tail) words() string {
	s := strings.Join(t.lines(), " | ")
	if len(s) > shownBytes {
		s = "..." + strings.ToValidUTF8(s[len(s)-shownBytes:], "")
	}
	return s
}
