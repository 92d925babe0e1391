package items

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readCSV reads fields separated by commas, as RFC 4180 has them. Blanks around a field do not count, unless they stand
// in double quotes.
func readCSV(text []byte, most int, check Check) ([]string, error) {
	if line := wide(text); line > 0 {
		return nil, fmt.Errorf("line %d: expected at most %d fields, found more", line, mostNames)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.TrimLeadingSpace = true
	r.FieldsPerRecord = -1 // compared below, in our own words
	trim := trimmer{text: text}
	names, err := r.Read()
	if err != nil {
		return nil, csvError(err)
	}
	trim.fields(r, names)
	if err := checkNames(names, check); err != nil {
		return nil, fmt.Errorf("line %d: %w", lineOf(r), err)
	}
	r.ReuseRecord = true
	c, variables := collector{most: most, check: check}, make(map[string]string, len(names))
	c.expect(bytes.Count(text, []byte("\n")), len(text), names)
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, csvError(err)
		}
		if len(fields) != len(names) {
			return nil, fmt.Errorf(
				"line %d: expected %d fields (%s), found %d",
				lineOf(r),
				len(names),
				strings.Join(names[:min(len(names), 5)], ","),
				len(fields),
			)
		}
		trim.fields(r, fields)
		for i, name := range names {
			variables[name] = fields[i]
		}
		if err := c.add(variables); err != nil {
			return nil, fmt.Errorf("line %d: %w", lineOf(r), err)
		}
	}
	if len(c.ends) == 0 {
		return nil, errors.New("the table has no rows: expected one line for each job after the line of names")
	}
	return c.items(), nil
}

// wide returns the first line on which a record ends up with more fields than an item may have, 0 without one. The
// reader would take a hundred bytes for each of them before anybody could look at it.
func wide(text []byte) int {
	line, commas, quoted := 1, 0, false
	for _, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			if commas++; commas == mostNames {
				return line
			}
		case c == '\n':
			line++
			if !quoted {
				commas = 0
			}
		}
	}
	return 0
}

func checkNames(names []string, check Check) error {
	seen := map[string]bool{}
	for i, name := range names {
		if err := check(name, ""); err != nil {
			return fmt.Errorf(
				"column %d: expected the names of the variables in the first line, separated by commas: %w",
				i+1,
				err,
			)
		}
		if seen[name] {
			return fmt.Errorf("column %d: the variable %s appears twice", i+1, name)
		}
		seen[name] = true
	}
	return nil
}

// trimmer removes the blanks at the end of fields; the reader knows only those at their beginning.
type trimmer struct {
	text  []byte
	line  int // whose first byte is at start; 0: none yet
	start int
}

// fields trims those of the record that was read last.
func (t *trimmer) fields(r *csv.Reader, fields []string) {
	for i, field := range fields {
		short := strings.TrimRight(field, " \t")
		if len(short) < len(field) && !t.quoted(r.FieldPos(i)) {
			fields[i] = short
		}
	}
}

// quoted reports whether a field begins with a double quote. Lines are asked for in their order.
func (t *trimmer) quoted(line, column int) bool {
	t.line = max(t.line, 1)
	for ; t.line < line; t.line++ {
		t.start += bytes.IndexByte(t.text[t.start:], '\n') + 1
	}
	return t.text[t.start+column-1] == '"'
}

// lineOf is the line on which the record began that was read last.
func lineOf(r *csv.Reader) int {
	line, _ := r.FieldPos(0)
	return line
}

func csvError(err error) error {
	wrong, is := errors.AsType[*csv.ParseError](err)
	switch {
	case !is:
		return err
	case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
		return fmt.Errorf(
			"line %d, column %d: a double quote is not closed, or stands inside a field: put the whole field in double quotes, and write each of its own twice",
			wrong.Line,
			wrong.Column,
		)
	}
	return fmt.Errorf("line %d, column %d: this is not CSV: %w", wrong.Line, wrong.Column, wrong.Err)
}
