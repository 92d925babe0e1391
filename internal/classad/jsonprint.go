package classad

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendJSON appends a value in the form of condor_q -json, which ReadJSON reads. The text of an expression is taken
// for one in the old syntax.
func AppendJSON(b []byte, v Value) []byte {
	switch v.kind {
	case Undefined:
		return append(b, "null"...)
	case Bool, Int:
		return append(b, v.String()...)
	case Real:
		if f := math.Float64frombits(v.num); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return append(b, formatReal(f)...)
		}
	case String:
		return AppendJSONString(b, v.str)
	case Unevaluated:
		if strings.HasPrefix(v.str, "{") || strings.HasPrefix(v.str, "[") {
			if x, err := v.Expr(); err == nil {
				return appendJSONExpr(b, x)
			}
		}
	}
	b = append(b, `"\/Expr(`...)
	b = appendEscaped(b, newSyntax(v.String()))
	return append(b, `)\/"`...)
}

func appendJSONExpr(b []byte, x Expr) []byte {
	switch x := x.(type) {
	case *Literal:
		if x.text == "" || x.Value.kind == Real {
			return AppendJSON(b, x.Value)
		}
	case *List:
		b = append(b, '[')
		for i, e := range x.Elems {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendJSONExpr(b, e)
		}
		return append(b, ']')
	case *Record:
		b = append(b, '{')
		for i, f := range x.Fields {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(AppendJSONString(b, f.Name), ": "...)
			b = appendJSONExpr(b, f.X)
		}
		return append(b, '}')
	}
	return AppendJSON(b, ParseValue(x.String()))
}

// newSyntax doubles the backslashes of the old syntax, where one stands for itself unless a quote follows.
func newSyntax(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '\\' && (i+1 == len(s) || s[i+1] != '"') {
			b.WriteByte('\\')
		}
	}
	return b.String()
}

// AppendJSONString appends a string of JSON.
func AppendJSONString(b []byte, s string) []byte {
	return append(appendEscaped(append(b, '"'), s), '"')
}

func appendEscaped(b []byte, s string) []byte {
	for _, r := range s { // what is not UTF-8 becomes U+FFFD
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ':
			b = append(b, `\u00`...)
			b = append(b, strconv.FormatInt(int64(r)>>4, 16)...)
			b = append(b, strconv.FormatInt(int64(r)&15, 16)...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}
