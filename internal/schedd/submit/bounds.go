package submit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
)

// The schedd, the negotiator, the machines and the tools evaluate what a user has written, as often as they like. What
// that can take is bounded by four rules: an expression calls only functions whose result is not longer than their
// arguments; it contains no nested ad, whose attributes could refer to each other; it is small even with everything in
// it that it refers to; and what it looks for with regular expressions is soon found (patterns.go).

// checkBounds refuses a nested ad and a call of any other function, at its place in the text v.
func checkBounds(v string, x classad.Expr) error {
	var err error
	classad.Walk(x, func(x classad.Expr) bool {
		switch x := x.(type) {
		case *classad.Record:
			err = misplaced(v, x.Off, "a nested ad [...]", "an expression without one")
		case *classad.Call:
			if !slices.ContainsFunc(htcopts.Functions, func(f string) bool { return strings.EqualFold(f, x.Name) }) {
				err = misplaced(
					v,
					x.Off,
					fmt.Sprintf("the function %.40s", x.Name),
					"one of "+strings.Join(htcopts.Functions, ", "),
				)
			} else if _, wrong := searchOf(x); wrong != "" {
				err = misplaced(v, x.Off, wrong, soonDone)
			}
		}
		return err == nil
	})
	return err
}

// soonDone is what is expected of a regular expression.
const soonDone = "one that HTCondor takes and is soon done with (docs/htcjob.md, \"Expressions\")"

func misplaced(v string, off int, found, expected string) error {
	line, column := classad.Position(v, off)
	return &classad.SyntaxError{Line: line, Column: column, Offset: off, Found: found, Expected: expected}
}

// maxExpanded is the maximum size of an expression in bytes, with the values of those attributes to which it refers and
// that other lines set, once for each time that they are referred to.
const maxExpanded = 64 << 10

// chained refuses a description in which an expression becomes too large that way, or refers to itself.
func (d Description) chained(options []option) error {
	key, wrong := tooLong(options)
	if wrong == nil {
		return nil
	}
	for l, err := range logicalLines(d.Options) {
		if err != nil {
			return err
		}
		if o, err := l.parse(d.allowances()); err == nil && o.key == key {
			return l.refuse(0, "%s: %w", strings.TrimPrefix(key, "My."), wrong)
		}
	}
	return condor.Refusal("spec.%s: %w", key, wrong) // requirements; all other fields are numbers and words
}

// tooLong returns the key of the first such expression, and what is wrong with it.
func tooLong(options []option) (key string, err error) {
	c := chain{set: map[string]*link{}}
	last := ""                  // request
	for _, o := range options { // of two lines for one attribute both count: HTCondor joins some of them
		attribute := attributeOf(o.key)
		l := c.of(attribute)
		l.size, l.refs = l.size+len(o.value), append(l.refs, referred(o)...)
		l.searches = append(l.searches, searches(o)...)
		if !isRequest(attribute) {
			continue
		}
		last = o.key
		if err := c.require(attribute, o); err != nil {
			return o.key, err
		}
	}
	for _, o := range options {
		if err := c.check(attributeOf(o.key)); err != nil {
			return o.key, err
		}
	}
	if last == "" {
		return "", nil
	}
	if err := c.check(attrRequirements); err != nil { // no line says them
		return last, fmt.Errorf("in the requirements, to which HTCondor adds all requests: %w", err)
	}
	return "", nil
}

// attrRequirements is an attribute to which condor_submit adds all requests.
const attrRequirements = "requirements"

func isRequest(attribute string) bool {
	return strings.HasPrefix(attribute, "request") || attribute == "requiregpus"
}

// require adds a request to the requirements.
func (c chain) require(attribute string, o option) error {
	all := c.of(attrRequirements)
	all.refs = append(all.refs, attribute)
	x, err := classad.ParseExpr(o.value)
	if err != nil {
		return nil //nolint:nilerr // a number with a unit
	}
	s, wrong := requested(x)
	switch {
	case wrong != "":
		return fmt.Errorf("found %s, as which HTCondor takes the text of a request, expected %s", wrong, soonDone)
	case s != nil:
		all.searches = append(all.searches, *s)
	}
	return nil
}

// check returns what is wrong with an attribute.
func (c chain) check(attribute string) error {
	switch size := c.expanded(attribute); {
	case size == endless:
		return errors.New(
			"found an expression that refers to itself, perhaps by way of what other lines set, expected the value instead of the reference",
		)
	case size > maxExpanded:
		return fmt.Errorf(
			"found an expression that is longer than %d KiB with the values of what it refers to and other lines set, expected fewer or shorter ones",
			maxExpanded>>10,
		)
	case c.set[attribute].steps > maxSteps:
		return errors.New(
			"found regular expressions that may take long, with those of what it refers to, " +
				"expected fewer, with fewer repetitions, alternatives or characters to look through",
		)
	}
	return nil
}

// chain has the attributes that lines set, in lower case.
type chain struct{ set map[string]*link }

// of returns the link of an attribute, which is added if need be.
func (c chain) of(attribute string) *link {
	if c.set[attribute] == nil {
		c.set[attribute] = &link{}
	}
	return c.set[attribute]
}

// link is the value of one attribute: its size, the names in it, in lower case, each as often as it is there, and what
// it looks for.
type link struct {
	size     int
	refs     []string
	searches []search

	expanded int // 0: not known yet
	steps    int // of the searches, with those of the names
	open     bool
}

// endless is the size of what refers to itself.
const endless = 1 << 30

func (c chain) expanded(attribute string) int {
	l := c.set[attribute]
	switch {
	case l == nil:
		return 0
	case l.open:
		return endless
	case l.expanded > 0:
		return l.expanded
	}
	l.open = true
	size := c.with(l.size, l.refs)
	for _, ref := range l.refs {
		if other := c.set[ref]; other != nil {
			l.steps = min(l.steps+other.steps, endless)
		}
	}
	for _, s := range l.searches {
		in := names(s.in)
		length := c.with(lengthOf(s.in), in)
		if slices.ContainsFunc(in, isLong) {
			length += maxExpanded
		}
		l.steps = min(l.steps+s.steps(length), endless)
	}
	l.open, l.expanded = false, size
	return size
}

// isLong reports whether htcd may write a long text into an attribute: of URLs, or of names.
func isLong(attribute string) bool {
	return attribute == "transferinput" || attribute == "transferoutputremaps" || isTag(attribute)
}

// with adds to a size those of what is referred to.
func (c chain) with(size int, refs []string) int {
	for _, ref := range refs {
		if size = min(size+c.expanded(ref), endless); size == endless {
			break
		}
	}
	return size
}

// referred returns the names to which a line refers.
func referred(o option) []string {
	x, err := classad.ParseExpr(o.value)
	if err != nil || !isExpression(o.key) {
		return nil
	}
	return names(x)
}

// searches returns the calls in a line that look for regular expressions.
func searches(o option) (all []search) {
	x, err := classad.ParseExpr(o.value)
	if err != nil || !isExpression(o.key) {
		return nil
	}
	classad.Walk(x, func(x classad.Expr) bool {
		if call, is := x.(*classad.Call); is {
			if s, _ := searchOf(call); s != nil {
				all = append(all, *s)
			}
		}
		return true
	})
	return all
}

// names returns those to which an expression refers, in lower case, except those in the other ad of a match.
func names(x classad.Expr) []string {
	var names []string
	classad.Walk(x, func(x classad.Expr) bool {
		switch x := x.(type) {
		case *classad.Ref:
			if !strings.EqualFold(x.Scope, "target") {
				names = append(names, strings.ToLower(x.Name))
			}
			if x.Scope != "" { // perhaps an attribute, too
				names = append(names, strings.ToLower(x.Scope))
			}
		case *classad.Select:
			names = append(names, strings.ToLower(x.Name))
		}
		return true
	})
	return names
}

// isExpression reports whether the value of a key is an expression and not words. Whatever a site allows in addition is
// not known here.
func isExpression(key string) bool {
	switch key {
	case "accounting_group", "concurrency_limits", "notification", "transfer_output_files":
		return false
	}
	return strings.HasPrefix(key, "My.") || allowed[key] != nil || htcopts.CustomRequest.MatchString(key)
}

// attributeOf returns the name of the attribute that a key sets, in lower case.
func attributeOf(key string) string {
	if name, is := strings.CutPrefix(key, "My."); is {
		return strings.ToLower(name)
	}
	switch key {
	case "preferences":
		return "rank"
	case "retry_until":
		return "onexitremove"
	case "concurrency_limits_expr":
		return "concurrencylimits"
	case "priority":
		return "jobprio"
	case "transfer_output_files":
		return "transferoutput"
	}
	return strings.ReplaceAll(key, "_", "")
}
