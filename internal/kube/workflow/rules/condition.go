// Package rules decides when a rule of a workflow acts.
package rules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Condition is the `when` of a rule: comparisons of value with numbers, joined by && and ||. All of it is CEL, in which
// && binds closer.
type Condition struct{ anyOf [][]comparison }

type comparison struct {
	operator string
	number   float64
}

var comparisonRE = regexp.MustCompile(
	`^\s*value\s*(<=|>=|==|!=|<|>)\s*(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?)\s*$`,
)

// Parse reads a condition. An empty one holds always.
func Parse(text string) (c Condition, err error) {
	if text == "" {
		return Condition{anyOf: [][]comparison{nil}}, nil
	}
	for alternative := range strings.SplitSeq(text, "||") {
		var all []comparison
		for part := range strings.SplitSeq(alternative, "&&") {
			m := comparisonRE.FindStringSubmatch(part)
			if m == nil {
				return c, fmt.Errorf("expected comparisons such as value > 2.0, joined by && or ||, found %.100q", text)
			}
			number, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return c, fmt.Errorf("the number %.40q: %w", m[2], err)
			}
			all = append(all, comparison{m[1], number})
		}
		c.anyOf = append(c.anyOf, all)
	}
	return c, nil
}

// Holds reports whether the condition is true of a value.
func (c Condition) Holds(value float64) bool {
	for _, all := range c.anyOf {
		holds := true
		for _, one := range all {
			holds = holds && one.holds(value)
		}
		if holds {
			return true
		}
	}
	return false
}

func (c comparison) holds(value float64) bool {
	switch c.operator {
	case "<":
		return value < c.number
	case "<=":
		return value <= c.number
	case ">":
		return value > c.number
	case ">=":
		return value >= c.number
	case "==":
		return value == c.number
	}
	return value != c.number
}
