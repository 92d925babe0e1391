package items

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readCSV reads fields separated by commas, as RFC 4180 has them. Blanks after a comma do not count.
func readCSV(text []byte, check Check) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.TrimLeadingSpace = true
	r.FieldsPerRecord = -1 // compared below, in our own words
	names, err := r.Read()
	if err != nil {
		return nil, csvError(err)
	}
	if err := checkNames(names, check); err != nil {
		return nil, fmt.Errorf("line %d: %w", lineOf(r), err)
	}
	r.ReuseRecord = true
	c := collector{check: check}
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, csvError(err)
		}
		if len(fields) != len(names) {
			return nil, fmt.Errorf("line %d: expected %d fields (%s), found %d", lineOf(r), len(names), strings.Join(names[:min(len(names), 5)], ","), len(fields))
		}
		variables := make(map[string]string, len(names))
		for i, name := range names {
			variables[name] = fields[i]
		}
		if err := c.add(variables); err != nil {
			return nil, fmt.Errorf("line %d: %w", lineOf(r), err)
		}
	}
	if len(c.items) == 0 {
		return nil, errors.New("the table has no rows: expected one line for each job after the line of names")
	}
	return c.items, nil
}

func checkNames(names []string, check Check) error {
	seen := map[string]bool{}
	for i, name := range names {
		if err := check(name, ""); err != nil {
			return fmt.Errorf("column %d: expected the names of the variables in the first line, separated by commas: %w", i+1, err)
		}
		if seen[name] {
			return fmt.Errorf("column %d: the variable %s appears twice", i+1, name)
		}
		seen[name] = true
	}
	return nil
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
		return fmt.Errorf("line %d, column %d: a double quote is not closed, or stands inside a field: put the whole field in double quotes, and write each of its own twice",
			wrong.Line, wrong.Column)
	}
	return fmt.Errorf("line %d, column %d: this is not CSV: %w", wrong.Line, wrong.Column, wrong.Err)
}
