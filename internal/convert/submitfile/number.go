package submitfile

import (
	"fmt"
	"math"

	"htc.cern.ch/htcd/internal/classad"
)

// number is what arithmetic yields.
type number struct {
	real bool
	i    int64
	f    float64
}

func (n number) float() float64 {
	if n.real {
		return n.f
	}
	return float64(n.i)
}

// evaluate does the arithmetic of an expression without attributes and functions.
func evaluate(text string) (number, error) {
	x, err := classad.ParseExpr(text)
	if err != nil {
		return number{}, fmt.Errorf("%q is no number", trim(text))
	}
	n, known := arithmetic(x)
	if !known {
		return number{}, fmt.Errorf("%q does not evaluate to a number here: write the number", trim(text))
	}
	return n, nil
}

func arithmetic(x classad.Expr) (number, bool) {
	switch x := x.(type) {
	case *classad.Literal:
		if f, is := x.Value.Real(); is {
			i, _ := x.Value.Int()
			return number{real: x.Value.Kind() == classad.Real, i: i, f: f}, true
		}
	case *classad.Paren:
		return arithmetic(x.X)
	case *classad.Unary:
		n, known := arithmetic(x.X)
		switch x.Op {
		case "-":
			return number{n.real, -n.i, -n.f}, known
		case "+":
			return n, known
		}
	case *classad.Binary:
		l, known := arithmetic(x.L)
		r, also := arithmetic(x.R)
		if !known || !also {
			return number{}, false
		}
		if l.real || r.real {
			return reals(x.Op, l.float(), r.float())
		}
		return integers(x.Op, l.i, r.i)
	}
	return number{}, false
}

func reals(op string, l, r float64) (number, bool) {
	n := number{real: true}
	switch op {
	case "+":
		n.f = l + r
	case "-":
		n.f = l - r
	case "*":
		n.f = l * r
	case "/":
		n.f = l / r
	default:
		return n, false
	}
	return n, !math.IsNaN(n.f) && !math.IsInf(n.f, 0)
}

func integers(op string, l, r int64) (number, bool) {
	switch op {
	case "+":
		return number{i: l + r}, true
	case "-":
		return number{i: l - r}, true
	case "*":
		return number{i: l * r}, true
	case "/":
		if r != 0 {
			return number{i: l / r}, true
		}
	case "%":
		if r != 0 {
			return number{i: l % r}, true
		}
	}
	return number{}, false
}
