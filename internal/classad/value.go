package classad

import (
	"math"
	"strconv"
	"strings"
)

// Kind is the type of a Value.
type Kind uint8

// The kinds of value.
const (
	Undefined  Kind = iota
	ErrorValue      // the literal error
	Bool
	Int
	Real
	String
	Unevaluated // an expression, list or nested ad, kept as its text
)

// Value is a literal, or the text of an unevaluated expression. The zero Value is undefined.
type Value struct {
	kind Kind
	num  uint64 // Bool, Int, Real
	str  string // String, Unevaluated
}

// BoolValue returns a boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// IntValue returns an integer.
func IntValue(i int64) Value { return Value{kind: Int, num: uint64(i)} }

// RealValue returns a real number.
func RealValue(f float64) Value { return Value{kind: Real, num: math.Float64bits(f)} }

// StringValue returns a string.
func StringValue(s string) Value { return Value{kind: String, str: s} }

// ErrValue returns the value error.
func ErrValue() Value { return Value{kind: ErrorValue} }

func unevaluated(text string) Value { return Value{kind: Unevaluated, str: text} }

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.kind }

// Bool returns a boolean.
func (v Value) Bool() (bool, bool) { return v.num != 0, v.kind == Bool }

// Int returns an integer; a real without a fraction counts as one.
func (v Value) Int() (int64, bool) {
	switch v.kind {
	case Int:
		return int64(v.num), true
	case Real:
		f := math.Float64frombits(v.num)
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), true
		}
	}
	return 0, false
}

// Real returns a real number or an integer as one.
func (v Value) Real() (float64, bool) {
	switch v.kind {
	case Int:
		return float64(int64(v.num)), true
	case Real:
		return math.Float64frombits(v.num), true
	}
	return 0, false
}

// Str returns a string's content.
func (v Value) Str() (string, bool) { return v.str, v.kind == String }

// String prints the value as ClassAd source, on one line.
func (v Value) String() string {
	switch v.kind {
	case ErrorValue:
		return "error"
	case Bool:
		if v.num != 0 {
			return "true"
		}
		return "false"
	case Int:
		return strconv.FormatInt(int64(v.num), 10)
	case Real:
		return formatReal(math.Float64frombits(v.num))
	case String:
		return Quote(v.str)
	case Unevaluated:
		return lineBreaks.Replace(v.str)
	}
	return "undefined"
}

// lineBreaks keeps an ad's attribute on one line: JSON can contain an expression of several.
var lineBreaks = strings.NewReplacer("\n", " ", "\r", " ")

// formatReal prints a number so that it is read back as the same real.
func formatReal(f float64) string {
	switch {
	case math.IsNaN(f):
		return `real("NaN")`
	case math.IsInf(f, 1):
		return `real("INF")`
	case math.IsInf(f, -1):
		return `real("-INF")`
	}
	s := strconv.FormatFloat(f, 'G', -1, 64)
	if !strings.ContainsAny(s, ".E") {
		s += ".0"
	}
	return s
}
