package submitfile

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// request is what a queue statement says.
type request struct {
	count  int      // jobs of each item
	names  []string // of the variables
	mode   mode
	slice  slice
	list   string // what stands on the statement's line
	inline bool   // the list goes on in the lines after it
	source string // file, or command with | at its end, of the table
}

// mode is where items come from.
type mode int

const (
	alone mode = iota
	in
	from
	matching
	matchingFiles
	matchingDirs
)

var (
	// keywordRE matches up to the keyword: it stands between white space, or before a parenthesis.
	keywordRE = regexp.MustCompile(`(?i)^(|.*?\s)(in|from|matching)(\s|\(|$)`)
	wordRE    = regexp.MustCompile(`(?i)^(files|dirs|any|table)(\s|\(|$)`)
	sliceRE   = regexp.MustCompile(`^\[\s*(-?[0-9]*)\s*(?::\s*(-?[0-9]*)\s*(?::\s*(-?[0-9]*)\s*)?)?\]`)
)

// parseQueue reads what follows the word queue, its macros replaced.
func parseQueue(text string) (request, error) {
	q := request{count: 1}
	at := keywordRE.FindStringSubmatchIndex(text)
	if at == nil {
		var err error
		q.count, err = count(text)
		return q, err
	}
	q.mode = map[string]mode{"in": in, "from": from, "matching": matching}[strings.ToLower(text[at[4]:at[5]])]
	rest := trim(text[at[5]:])
	for {
		if m := wordRE.FindStringSubmatch(rest); m != nil {
			if err := q.qualify(strings.ToLower(m[1])); err != nil {
				return q, err
			}
			rest = trim(rest[len(m[1]):])
			continue
		}
		m := sliceRE.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		if err := q.slice.set(m[1:]); err != nil {
			return q, err
		}
		rest = trim(rest[len(m[0]):])
	}
	if err := q.where(rest); err != nil {
		return q, err
	}
	numbers := q.variables(text[:at[4]])
	var err error
	q.count, err = count(numbers)
	return q, err
}

// qualify takes the word after the keyword.
func (q *request) qualify(word string) error {
	switch {
	case word == "table" && q.mode == from:
		return errors.New("from table is read by HTCondor 25 only: write queue VARIABLES from FILE")
	case word == "any" && q.mode == matching:
	case word == "files" && q.mode == matching:
		q.mode = matchingFiles
	case word == "dirs" && q.mode == matching:
		q.mode = matchingDirs
	default:
		return fmt.Errorf("%s has no place here", word)
	}
	return nil
}

// where says where the items are.
func (q *request) where(rest string) error {
	switch {
	case strings.HasPrefix(rest, "(") && strings.HasSuffix(rest, ")"):
		q.list = trim(rest[1 : len(rest)-1])
	case strings.HasPrefix(rest, "("):
		q.list, q.inline = trim(rest[1:]), true
	case q.mode == from && rest == "-":
		return errors.New("the items of `from -` come from the standard input: write them into a file")
	case q.mode == from && rest == "":
		return errors.New("expected a file or a list in parentheses after from")
	case q.mode == from:
		q.source = rest
	default:
		q.list = rest
	}
	return nil
}

// variables takes the names before the keyword, and returns what stands before them.
func (q *request) variables(text string) string {
	text = strings.TrimRightFunc(text, isSpace)
	begin := len(text)
	for begin > 0 {
		c := text[begin-1]
		if '0' <= c && c <= '9' {
			letter := begin - 1
			for letter > 0 && '0' <= text[letter-1] && text[letter-1] <= '9' {
				letter--
			}
			if letter == 0 || !isNameByte(text[letter-1]) {
				break
			}
			begin = letter
			continue
		}
		if !isNameByte(c) && !isSpace(rune(c)) && c != ',' {
			break
		}
		begin--
	}
	q.names = tokens(text[begin:])
	return text[:begin]
}

// tokens splits at commas and white space.
func tokens(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || isSpace(r) })
}

// maxCount is that of condor_submit.
const maxCount = 1<<31 - 2

func count(text string) (int, error) {
	if trim(text) == "" {
		return 1, nil
	}
	n, err := whole(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("expected a number of jobs, found %q", trim(text))
	case n < 0 || n > maxCount:
		return 0, fmt.Errorf("expected 0 to %d jobs, found %d", maxCount, n)
	}
	return int(n), nil
}

// slice is Python's [start:end:step] of the items.
type slice struct {
	start, end, step *int
}

func (s *slice) set(parts []string) error {
	for i, to := range []**int{&s.start, &s.end, &s.step} {
		if parts[i] == "" {
			continue
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return fmt.Errorf("%q is no number of an item", parts[i])
		}
		*to = &n
	}
	if s.step != nil && *s.step <= 0 {
		return errors.New("the step of a slice must be 1 or more")
	}
	return nil
}

// has reports whether the i-th of n items is taken.
func (s slice) has(i, n int) bool {
	bound := func(at *int, absent int) int {
		switch {
		case at == nil:
			return absent
		case *at < 0:
			return *at + n
		}
		return *at
	}
	start, end := bound(s.start, 0), bound(s.end, n)
	return i >= start && i < end && (s.step == nil || (i-start)%*s.step == 0)
}

// columns splits an item into the values of n variables: at a comma or a blank, the last one takes the rest. A
// unit separator in it is then the only one.
func columns(item string, n int) []string {
	separators := ", \t"
	if strings.ContainsRune(item, 0x1f) {
		separators = "\x1f"
	}
	item = strings.TrimLeft(item, " \t")
	values := make([]string, 0, n)
	for len(values) < n-1 {
		i := strings.IndexAny(item, separators)
		if i < 0 {
			break
		}
		value := item[:i]
		if separators == "\x1f" {
			value = strings.TrimRight(value, " \t")
		}
		values = append(values, value)
		item = strings.TrimLeft(item[i+1:], " \t")
	}
	return append(values, item)
}
