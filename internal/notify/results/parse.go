// Package results reads what scripts of workflows have measured, and sums it up.
package results

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/notify"
)

// Bounds of what one job may report.
const (
	maxText  = notify.MaxResults // bytes
	maxNames = 16
	// largest keeps the sum of squares of many values finite.
	largest = 1e100
)

var (
	nameRE   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,62}$`)
	numberRE = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// Result is one of them.
type Result struct {
	Name  string
	Value float64
}

// Parse reads lines name=number. Of several lines of one name the last counts. What cannot be used is left out, and
// ignored says of the first such line, or of the rest of a text that is too long, what is wrong.
func Parse(text string) (all []Result, ignored string) {
	leave := func(format string, args ...any) {
		if ignored == "" {
			ignored = fmt.Sprintf(format, args...)
		}
	}
	if len(text) > maxText {
		text = text[:strings.LastIndexByte(text[:maxText], '\n')+1]
		leave("expected at most %d bytes", maxText)
	}
	at := map[string]int{}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		r, err := parseLine(line)
		i, known := at[r.Name]
		switch {
		case err != nil:
			leave("line %d: %v", n+1, err)
		case known:
			all[i] = r
		case len(all) == maxNames:
			leave("line %d: expected at most %d names", n+1, maxNames)
		default:
			at[r.Name] = len(all)
			all = append(all, r)
		}
	}
	return all, ignored
}

func parseLine(line string) (Result, error) {
	name, number, is := strings.Cut(line, "=")
	name, number = strings.TrimSpace(name), strings.TrimSpace(number)
	switch {
	case !is:
		return Result{}, fmt.Errorf("expected name=number, found %.40q", line)
	case !nameRE.MatchString(name):
		return Result{}, fmt.Errorf(
			"expected a name of at most 63 letters, digits and _ . -, not beginning with a digit, found %.80q",
			name,
		)
	}
	value, err := strconv.ParseFloat(number, 64)
	if !numberRE.MatchString(number) || err != nil || math.Abs(value) > largest {
		return Result{}, fmt.Errorf(
			"expected %s to be a decimal number between -1e100 and 1e100, found %.40q",
			name,
			number,
		)
	}
	return Result{Name: name, Value: value}, nil
}
