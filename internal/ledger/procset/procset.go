// Package procset reads and writes sets of jobs' numbers as people do: 3,7-9.
package procset

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Set is a set of numbers from 0. The zero value is empty.
type Set struct{ spans []span }

// span is the numbers first to last; before counts those of earlier spans.
type span struct{ first, last, before int }

// Of returns the set of these numbers, in any order.
func Of(numbers []int) Set {
	var s Set
	for _, n := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		s.add(n, n)
	}
	return s
}

// add adds numbers beyond those that are there.
func (s *Set) add(first, last int) {
	if end := len(s.spans) - 1; end >= 0 && s.spans[end].last+1 == first {
		s.spans[end].last = last
		return
	}
	s.spans = append(s.spans, span{first, last, s.Len()})
}

// Parse reads a set of numbers below size: numbers and ranges with commas between them, in any order.
func Parse(text string, size int) (Set, error) {
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		switch {
		case err1 != nil || err2 != nil || from > to:
			return Set{}, fmt.Errorf("expected numbers and ranges such as 3,7-9, found %.40q", part)
		case to >= uint64(size): // #nosec G115 -- no HTCJob has a negative number of jobs
			return Set{}, fmt.Errorf("there is no job %d: they are numbered 0 to %d", to, size-1)
		}
		spans = append(spans, span{first: int(from), last: int(to)})
	}
	slices.SortFunc(spans, func(a, b span) int { return a.first - b.first })
	var s Set
	next := 0
	for _, p := range spans {
		if p.last >= next {
			s.add(max(p.first, next), p.last)
			next = p.last + 1
		}
	}
	return s, nil
}

// Len returns how many numbers the set has.
func (s Set) Len() int {
	if len(s.spans) == 0 {
		return 0
	}
	p := s.spans[len(s.spans)-1]
	return p.before + p.last - p.first + 1
}

// At returns the number that i others of the set precede.
func (s Set) At(i int) (number int, ok bool) {
	if i < 0 || i >= s.Len() {
		return 0, false
	}
	p := s.spans[sort.Search(len(s.spans), func(n int) bool { return s.spans[n].before > i })-1]
	return p.first + i - p.before, true
}

// Nth is At for a set as String writes it, of which the set is not made.
func Nth(text string, i int) (number int, ok bool) {
	for i >= 0 && text != "" {
		part, rest, _ := strings.Cut(text, ",")
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if isRange && err == nil {
			to, err = strconv.Atoi(last)
		}
		switch n := to - from + 1; {
		case err != nil:
			return 0, false
		case i < n:
			return from + i, true
		default:
			i, text = i-n, rest
		}
	}
	return 0, false
}

// Has reports whether a number is in the set.
func (s Set) Has(number int) bool {
	n := sort.Search(len(s.spans), func(n int) bool { return s.spans[n].last >= number })
	return n < len(s.spans) && s.spans[n].first <= number
}

// Numbers returns the numbers of the set in order.
func (s Set) Numbers() []int {
	numbers := make([]int, 0, s.Len())
	for _, p := range s.spans {
		for n := p.first; n <= p.last; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Ranges yields the first and the last number of each range of the set, in order.
func (s Set) Ranges() iter.Seq2[int, int] {
	return func(yield func(first, last int) bool) {
		for _, p := range s.spans {
			if !yield(p.first, p.last) {
				return
			}
		}
	}
}

// String returns the set as Parse reads it.
func (s Set) String() string {
	var b strings.Builder
	for i, p := range s.spans {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(p.first))
		if p.last > p.first {
			b.WriteString("-" + strconv.Itoa(p.last))
		}
	}
	return b.String()
}
