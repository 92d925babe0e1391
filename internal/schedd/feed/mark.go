package feed

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Mark is a place in job_queue.log. The zero Mark is before everything.
type Mark struct {
	Born     int64 // when the queue was set up, in Unix seconds; a restart of the schedd keeps it
	Sequence int64 // of the file: each time that the schedd writes it anew, it counts on
	Offset   int64
}

// String prints a mark for Parse.
func (m Mark) String() string { return fmt.Sprintf("%d.%d.%d", m.Born, m.Sequence, m.Offset) }

// compare orders marks of one queue.
func (m Mark) compare(other Mark) int {
	return cmp.Or(cmp.Compare(m.Sequence, other.Sequence), cmp.Compare(m.Offset, other.Offset))
}

// ParseMark reads what String printed.
func ParseMark(text string) (m Mark, err error) {
	words := strings.Split(text, ".")
	at := []*int64{&m.Born, &m.Sequence, &m.Offset}
	if len(words) != len(at) {
		return m, fmt.Errorf("mark %q: want three numbers joined by dots", text)
	}
	for i, word := range words {
		if *at[i], err = strconv.ParseInt(word, 10, 64); err != nil || *at[i] < 0 {
			return m, fmt.Errorf("mark %q: %q is no number", text, word)
		}
	}
	return m, nil
}
