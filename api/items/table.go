package items

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// Table reads a table of at most so many rows: a JSON list of objects of strings, numbers and booleans, or CSV whose
// first line has the names. What begins with a bracket is JSON.
func Table(text []byte, most int, check Check) ([]string, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	start := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(start) == 0:
		return nil, errors.New(
			"the table is empty: expected a JSON list, or CSV with a line of names and one line for each job",
		)
	case !utf8.Valid(text):
		return nil, errors.New(
			"the table is not UTF-8: expected a JSON list, or CSV with a line of names and one line for each job",
		)
	case start[0] == '[' || start[0] == '{':
		return readJSON(text, most, check)
	}
	return readCSV(text, most, check)
}
