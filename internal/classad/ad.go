package classad

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Attr is one attribute of an ad.
type Attr struct {
	Name  string
	Value Value
}

// Ad is a list of attributes in the order they were read. Names are compared without
// regard to case. When a name comes twice the last one counts, as in HTCondor.
type Ad []Attr

// Get returns an attribute's value; undefined when it is absent.
func (a Ad) Get(name string) Value {
	for i := len(a) - 1; i >= 0; i-- {
		if len(a[i].Name) == len(name) && strings.EqualFold(a[i].Name, name) {
			return a[i].Value
		}
	}
	return Value{}
}

// Has reports whether the attribute exists, even if it is undefined.
func (a Ad) Has(name string) bool {
	for _, at := range a {
		if strings.EqualFold(at.Name, name) {
			return true
		}
	}
	return false
}

// Expr parses an attribute.
func (a Ad) Expr(name string) (Expr, error) { return a.Get(name).Expr() }

// String prints the ad in long form, without the empty line after it.
func (a Ad) String() string {
	var b strings.Builder
	for _, at := range a {
		printName(&b, at.Name)
		b.WriteString(" = ")
		b.WriteString(at.Value.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Expr returns the value as an expression; only that of an Unevaluated one can be
// malformed.
func (v Value) Expr() (Expr, error) {
	if v.kind != Unevaluated {
		return &Literal{Value: v}, nil
	}
	x, err := parse(v.str, v.num == newText)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", v.str, err)
	}
	return x, nil
}

// newText in num marks an Unevaluated value whose text is in the new syntax.
const newText = 1

// ParseValue reads the text of a value, in the old syntax, without parsing expressions: what is not a
// literal becomes an Unevaluated value.
func ParseValue(s string) Value {
	if s == "" {
		return unevaluated(s)
	}
	switch c := s[0]; {
	case c == '"':
		n, raw, escaped := endOfQuoted(s, '"', false)
		if n != len(s) {
			return unevaluated(s)
		}
		if escaped {
			raw = unescape(raw, false)
		}
		return StringValue(raw)
	case isDigit(c), c == '-', c == '.':
		return numberLiteral(s)
	}
	switch {
	case strings.EqualFold(s, "true"):
		return BoolValue(true)
	case strings.EqualFold(s, "false"):
		return BoolValue(false)
	case strings.EqualFold(s, "undefined"):
		return Value{}
	case strings.EqualFold(s, "error"):
		return ErrValue()
	}
	return unevaluated(s)
}

// numberLiteral reads a decimal integer or real; what looks like one and is
// none, such as -x, stays unevaluated.
func numberLiteral(s string) Value {
	n := len(s)
	if n < 19 {
		i, neg := 0, s[0] == '-'
		if neg {
			i = 1
		}
		var v int64
		for ; i < n && isDigit(s[i]); i++ {
			v = v*10 + int64(s[i]-'0')
		}
		if i == n && (n > 1 || !neg) {
			if neg {
				v = -v
			}
			return IntValue(v)
		}
	} else if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return IntValue(v)
	}
	for i := range n {
		if c := s[i]; !isDigit(c) && c != '-' && c != '+' && c != '.' && c|0x20 != 'e' {
			return unevaluated(s)
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return unevaluated(s)
	}
	return RealValue(f)
}
