package feed

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
)

// look returns an attribute of a job.
type look func(name) (attribute, bool)

// term is a part of a constraint, ready to be evaluated.
type term func(look) classad.Value

// constraint is a compiled ClassAd expression of the kind that htcd asks with: comparisons, && || !, ?:, + - * /,
// member with a list of literals, size, unparse and time. An attribute that is an expression itself is an error in it,
// as is a value that is too long to be mirrored.
type constraint struct{ term term }

// matches reports whether a job meets the constraint.
func (c constraint) matches(l look) bool { return truth(c.term(l)) == yes }

// compile returns the constraint that a text is; an empty one matches every job.
func compile(text string, now func() time.Time) (constraint, error) {
	if text == "" {
		text = "true"
	}
	x, err := classad.ParseExpr(text)
	if err != nil {
		return constraint{}, fmt.Errorf("constraint: %w", err)
	}
	c := compiler{now: now}
	t, err := c.term(x)
	if err != nil {
		return constraint{}, fmt.Errorf("constraint: %w", err)
	}
	return constraint{t}, nil
}

type compiler struct{ now func() time.Time }

func unknown(x classad.Expr) error {
	return fmt.Errorf("%.60s: htcd feed does not evaluate this; ask condor_q", x.String())
}

func (c compiler) terms(xs ...classad.Expr) (all []term, err error) {
	for _, x := range xs {
		t, err := c.term(x)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (c compiler) term(x classad.Expr) (term, error) {
	switch x := x.(type) {
	case *classad.Literal:
		return func(look) classad.Value { return x.Value }, nil
	case *classad.Paren:
		return c.term(x.X)
	case *classad.Ref:
		if x.Scope != "" && !strings.EqualFold(x.Scope, "MY") || x.Absolute {
			return nil, unknown(x)
		}
		n := nameOf(x.Name)
		return func(l look) classad.Value { return valueOf(l(n)) }, nil
	case *classad.Unary:
		t, err := c.term(x.X)
		switch {
		case err != nil:
			return nil, err
		case x.Op == "!":
			return func(l look) classad.Value { return not(truth(t(l))).value() }, nil
		case x.Op == "-":
			return func(l look) classad.Value { return arithmetic("-", classad.IntValue(0), t(l)) }, nil
		}
	case *classad.Cond:
		if x.Then == nil {
			return nil, unknown(x)
		}
		t, err := c.terms(x.If, x.Then, x.Else)
		if err != nil {
			return nil, err
		}
		return func(l look) classad.Value {
			switch v := truth(t[0](l)); v {
			case yes:
				return t[1](l)
			case no:
				return t[2](l)
			default:
				return v.value()
			}
		}, nil
	case *classad.Binary:
		t, err := c.terms(x.L, x.R)
		if err != nil {
			return nil, err
		}
		if f := binary(strings.ToLower(x.Op), t[0], t[1]); f != nil {
			return f, nil
		}
	case *classad.Call:
		return c.call(x)
	}
	return nil, unknown(x)
}

func (c compiler) call(x *classad.Call) (term, error) {
	switch f := strings.ToLower(x.Name); {
	case f == "time" && len(x.Args) == 0:
		at := classad.IntValue(c.now().Unix())
		return func(look) classad.Value { return at }, nil
	case f == "size" && len(x.Args) == 1:
		t, err := c.term(x.Args[0])
		return func(l look) classad.Value {
			v := t(l)
			if s, is := v.Str(); is {
				return classad.IntValue(int64(len(s)))
			}
			return classad.ErrValue()
		}, err
	case f == "unparse" && len(x.Args) == 1:
		if r, is := x.Args[0].(*classad.Ref); is && r.Scope == "" {
			n := nameOf(r.Name)
			return func(l look) classad.Value { return source(l(n)) }, nil
		}
	case f == "member" && len(x.Args) == 2:
		if list, is := x.Args[1].(*classad.List); is {
			return c.member(x.Args[0], list)
		}
	}
	return nil, unknown(x)
}

// member compares with numbers by a table: there may be thousands.
func (c compiler) member(of classad.Expr, list *classad.List) (term, error) {
	numbers, texts := map[int64]bool{}, map[string]bool{}
	for _, e := range list.Elems {
		l, is := e.(*classad.Literal)
		if !is {
			return nil, unknown(e)
		}
		if n, is := l.Value.Int(); is {
			numbers[n] = true
		} else if s, is := l.Value.Str(); is {
			texts[strings.ToLower(s)] = true
		} else {
			return nil, unknown(e)
		}
	}
	t, err := c.term(of)
	return func(l look) classad.Value {
		v := t(l)
		if n, is := v.Int(); is {
			return classad.BoolValue(numbers[n])
		} else if s, is := v.Str(); is {
			return classad.BoolValue(texts[strings.ToLower(s)])
		}
		return v // undefined and error
	}, err
}

// valueOf returns an attribute's value, if it is a literal.
func valueOf(at attribute, has bool) classad.Value {
	switch {
	case !has:
		return classad.Value{}
	case at.cut:
		return classad.ErrValue()
	}
	if v := classad.ParseValue(at.value); v.Kind() != classad.Unevaluated {
		return v
	}
	return classad.ErrValue()
}

// source returns an attribute's text, and one that is long of an attribute that is too long.
func source(at attribute, has bool) classad.Value {
	switch {
	case !has:
		return classad.StringValue("undefined")
	case at.cut:
		return classad.StringValue(longText)
	}
	return classad.StringValue(at.value)
}

var longText = strings.Repeat(" ", maxValue)

// logical is a truth value of ClassAds.
type logical int

const (
	no logical = iota
	yes
	undefined
	wrong
)

func (v logical) value() classad.Value {
	switch v {
	case undefined:
		return classad.Value{}
	case wrong:
		return classad.ErrValue()
	}
	return classad.BoolValue(v == yes)
}

func truth(v classad.Value) logical {
	if b, is := v.Bool(); is {
		return logicalOf(b)
	}
	if n, is := v.Real(); is {
		return logicalOf(n != 0)
	}
	if v.Kind() == classad.Undefined {
		return undefined
	}
	return wrong
}

func logicalOf(b bool) logical {
	if b {
		return yes
	}
	return no
}

func not(v logical) logical {
	switch v {
	case no:
		return yes
	case yes:
		return no
	}
	return v
}

// joined is && where decides is no, and || where it is yes: the left side alone may decide.
func joined(decides logical, l, r term) term {
	return func(at look) classad.Value {
		left := truth(l(at))
		if left == decides || left == wrong {
			return left.value()
		}
		right := truth(r(at))
		if left == undefined && right != decides && right != wrong {
			return classad.Value{}
		}
		return right.value()
	}
}

func binary(op string, l, r term) term {
	switch op {
	case "&&":
		return joined(no, l, r)
	case "||":
		return joined(yes, l, r)
	case "=?=", "is":
		return func(at look) classad.Value { return classad.BoolValue(l(at) == r(at)) }
	case "=!=", "isnt":
		return func(at look) classad.Value { return classad.BoolValue(l(at) != r(at)) }
	case "+", "-", "*", "/":
		return func(at look) classad.Value { return arithmetic(op, l(at), r(at)) }
	}
	if i := slices.Index([]string{"<", "<=", "==", ">=", ">", "!="}, op); i >= 0 {
		return func(at look) classad.Value { return compare(op, l(at), r(at)) }
	}
	return nil
}

// strict returns what an operator makes of operands of which one is undefined or an error.
func strict(l, r classad.Value) (v classad.Value, is bool) {
	switch {
	case l.Kind() == classad.ErrorValue || r.Kind() == classad.ErrorValue:
		return classad.ErrValue(), true
	case l.Kind() == classad.Undefined || r.Kind() == classad.Undefined:
		return classad.Value{}, true
	}
	return classad.Value{}, false
}

func compare(op string, l, r classad.Value) classad.Value {
	if v, is := strict(l, r); is {
		return v
	}
	var order int
	a, isText := l.Str()
	b, areBoth := r.Str()
	x, isNumber := number64(l)
	y, areNumbers := number64(r)
	switch {
	case isText && areBoth:
		order = strings.Compare(strings.ToLower(a), strings.ToLower(b))
	case !isNumber || !areNumbers:
		return classad.ErrValue()
	case x < y:
		order = -1
	case x > y:
		order = 1
	}
	return classad.BoolValue(ordered(op, order))
}

func ordered(op string, order int) bool {
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case "==":
		return order == 0
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	}
	return order != 0
}

// number64 reads a number; a boolean counts as one.
func number64(v classad.Value) (float64, bool) {
	if b, is := v.Bool(); is {
		return float64(logicalOf(b)), true
	}
	return v.Real()
}

func arithmetic(op string, l, r classad.Value) classad.Value {
	if v, is := strict(l, r); is {
		return v
	}
	x, isX := l.Real()
	y, isY := r.Real()
	if !isX || !isY || op == "/" && y == 0 {
		return classad.ErrValue()
	}
	if l.Kind() == classad.Int && r.Kind() == classad.Int {
		a, _ := l.Int()
		b, _ := r.Int()
		return classad.IntValue(reckon(op, a, b))
	}
	return classad.RealValue(reckon(op, x, y))
}

func reckon[T int64 | float64](op string, a, b T) T {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	return a / b
}
