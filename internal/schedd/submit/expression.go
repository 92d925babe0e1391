package submit

import (
	"errors"
	"fmt"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// parsed parses a user's expression, which must keep to the bounds. This resolves escapes in quoted names, so earlier
// checks of the text have not seen what the names contain.
func parsed(v string) (classad.Expr, error) {
	x, err := classad.ParseExpr(v)
	if err != nil {
		return nil, err
	}
	if err := checkBounds(v, x); err != nil {
		return nil, err
	}
	classad.Walk(x, func(x classad.Expr) bool {
		err = checkNames(x)
		return err == nil
	})
	return x, err
}

// checkNames checks the names in a node of an expression.
func checkNames(x classad.Expr) error {
	switch x := x.(type) {
	case *classad.Ref:
		if x.Scope == "" {
			return quotable(x.Name)
		}
		if err := quotable(x.Scope); err != nil {
			return err
		}
		return bare(x.Name)
	case *classad.Select:
		return bare(x.Name)
	}
	return nil
}

// quotable refuses a quoted name that could only be written with an escape, or that has a special meaning to
// condor_submit, the schedd or a terminal.
func quotable(name string) error {
	at, what := unplain(name)
	if i := strings.IndexAny(name, "\t\\'\"$"); i >= 0 && (what == "" || i < at) {
		what = fmt.Sprintf("%q", name[i])
	}
	if what != "" {
		return fmt.Errorf(
			`found the name %q, expected one without tabs, control characters and \ ' " $: there is %s in it`,
			condor.Clip(name),
			what,
		)
	}
	return nil
}

// bare refuses a name after a dot that needs its quotes: HTCondor omits them when it prints the ad.
func bare(name string) error {
	if err := quotable(name); err != nil || classad.IsName(name) {
		return err
	}
	return fmt.Errorf(
		"found the name %q behind a dot, expected one of letters, digits and _: HTCondor leaves out its quotes there",
		condor.Clip(name),
	)
}

func expression(v string) (string, error) {
	x, err := parsed(v)
	if err != nil {
		return "", err
	}
	return x.String(), nil
}

// enclosed accepts an expression that condor_submit makes part of another. Inside an expression no string can end in a
// backslash, which would escape the closing quote.
func enclosed(v string) (string, error) {
	written, err := expression(v)
	if err == nil && strings.HasSuffix(written, `\"`) {
		err = fmt.Errorf(
			"found a string that ends in a backslash at the end of %q, expected none there: HTCondor adds more conditions",
			condor.Clip(v),
		)
	}
	return written, err
}

// joined returns two conditions with || or && between. The second is a user's and may end in a string that ends in a
// backslash, which is possible only at the end of an expression.
func joined(op, ours, users string) (string, error) {
	l, lErr := classad.ParseExpr(ours)
	r, rErr := classad.ParseExpr(users)
	if err := errors.Join(lErr, rErr); err != nil {
		return "", err
	}
	both := (&classad.Binary{Op: op, L: l, R: r}).String()
	if again, err := classad.ParseExpr(both); err != nil || again.String() != both {
		return "", fmt.Errorf(
			"found %q, which cannot stand beside %q: expected no string that ends in a backslash, and fewer parentheses",
			condor.Clip(users),
			ours,
		)
	}
	return both, nil
}
