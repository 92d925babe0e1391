package submit

import (
	"math"

	"htc.cern.ch/htcd/internal/classad"
)

// constant returns the number that an expression is wherever it is evaluated: numbers with + - * / and parentheses.
func constant(x classad.Expr) (n float64, is bool) {
	switch x := x.(type) {
	case *classad.Literal:
		return x.Value.Real()
	case *classad.Paren:
		return constant(x.X)
	case *classad.Unary:
		n, is = constant(x.X)
		if x.Op == "-" {
			n = -n
		}
		return n, is && (x.Op == "-" || x.Op == "+")
	case *classad.Binary:
		l, lIs := constant(x.L)
		r, rIs := constant(x.R)
		if !lIs || !rIs {
			return 0, false
		}
		switch x.Op {
		case "+":
			return l + r, true
		case "-":
			return l - r, true
		case "*":
			return l * r, true
		case "/":
			return l / r, true
		}
	}
	return 0, false
}

// dependent reports whether an expression refers to an attribute.
func dependent(x classad.Expr) bool {
	return !classad.Walk(x, func(x classad.Expr) bool {
		_, is := x.(*classad.Ref)
		return !is
	})
}

// calls reports whether an expression calls a function.
func calls(x classad.Expr) bool {
	return !classad.Walk(x, func(x classad.Expr) bool {
		_, is := x.(*classad.Call)
		return !is
	})
}

// amountOf reports whether a number can be an amount of something.
func amountOf(n float64) bool { return n >= 0 && !math.IsInf(n, 0) }
