package classad

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonParser reads one object; its strings are substrings of the object's text.
type jsonParser struct {
	s     string
	i     int
	line  int // of the object's first byte
	depth int
}

func (p *jsonParser) fail(expected string) error {
	line, col := Position(p.s, min(p.i, len(p.s)))
	found := "the end"
	if p.i < len(p.s) {
		r, _ := utf8.DecodeRuneInString(p.s[p.i:])
		found = strconv.QuoteRune(r)
	}
	return &SyntaxError{Line: p.line + line - 1, Column: col, Found: found, Expected: expected}
}

// space skips blanks and returns the next byte, 0 at the end.
func (p *jsonParser) space() byte {
	for p.i < len(p.s) && isSpace(p.s[p.i]) {
		p.i++
	}
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

// members calls fn at the value of each member of the current object.
func (p *jsonParser) members(fn func(name string) error) error {
	p.i++ // {
	for first := true; ; first = false {
		c := p.space()
		if c == '}' {
			p.i++
			return nil
		}
		if !first {
			if c != ',' {
				return p.fail(`"," or "}"`)
			}
			p.i++
			c = p.space()
		}
		if c != '"' {
			return p.fail("an attribute's name in quotes")
		}
		_, name, err := p.string()
		if err != nil {
			return err
		}
		if p.space() != ':' {
			return p.fail(`":"`)
		}
		p.i++
		if err := fn(name); err != nil {
			return err
		}
	}
}

func (p *jsonParser) ad(size int) (Ad, error) {
	ad := make(Ad, 0, size)
	err := p.members(func(name string) error {
		v, err := p.value()
		ad = append(ad, Attr{Name: name, Value: v})
		return err
	})
	return ad, err
}

const (
	exprOpen  = `\/Expr(`
	exprClose = `)\/`
)

func (p *jsonParser) value() (Value, error) {
	switch c := p.space(); c {
	case '"':
		raw, s, err := p.string()
		if err != nil {
			return Value{}, err
		}
		// Only an expression has its slash escaped: the string "/Expr(x)/" does not.
		if strings.HasPrefix(raw, exprOpen) && strings.HasSuffix(raw, exprClose) &&
			len(raw) >= len(exprOpen)+len(exprClose) {
			return Value{
				kind: Unevaluated,
				num:  newText,
				str:  strings.TrimSpace(s[len("/Expr(") : len(s)-len(")/")]),
			}, nil
		}
		return StringValue(cutString(s)), nil
	case 't':
		return BoolValue(true), p.word("true")
	case 'f':
		return BoolValue(false), p.word("false")
	case 'n':
		return Value{}, p.word("null")
	case '[', '{':
		var b strings.Builder
		err := p.nested(&b)
		return Value{kind: Unevaluated, num: newText, str: b.String()}, err
	default:
		start := p.i
		for p.i < len(p.s) && (isDigit(p.s[p.i]) || strings.IndexByte("+-.eE", p.s[p.i]) >= 0) {
			p.i++
		}
		if start < p.i {
			if v := numberLiteral(p.s[start:p.i]); v.kind != Unevaluated {
				return v, nil
			}
		}
		p.i = start
		return Value{}, p.fail("a value")
	}
}

func (p *jsonParser) word(w string) error {
	if !strings.HasPrefix(p.s[p.i:], w) {
		return p.fail(strconv.Quote(w))
	}
	p.i += len(w)
	return nil
}

// nested writes a list or an object as the ClassAd text it stands for.
func (p *jsonParser) nested(b *strings.Builder) error {
	if p.depth++; p.depth > maxDepth {
		return p.fail("no more than " + strconv.Itoa(maxDepth) + " levels of nesting")
	}
	defer func() { p.depth-- }()
	element := func() error {
		if c := p.space(); c == '[' || c == '{' {
			return p.nested(b)
		}
		v, err := p.value()
		if s, ok := v.Str(); ok {
			b.WriteString(quoteNew(s))
		} else {
			b.WriteString(v.String())
		}
		return err
	}
	if p.s[p.i] == '{' {
		b.WriteByte('[')
		sep := ""
		err := p.members(func(name string) error {
			b.WriteString(sep)
			sep = "; "
			printName(b, name)
			b.WriteString(" = ")
			return element()
		})
		b.WriteByte(']')
		return err
	}
	p.i++
	b.WriteByte('{')
	for first := true; ; first = false {
		c := p.space()
		if c == ']' {
			p.i++
			b.WriteByte('}')
			return nil
		}
		if !first {
			if c != ',' {
				return p.fail(`"," or "]"`)
			}
			p.i++
			b.WriteString(", ")
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// string reads a string; raw is the text between its quotes.
func (p *jsonParser) string() (raw, s string, err error) {
	start := p.i + 1
	escaped := false
	for i := start; i < len(p.s); i++ {
		for i < len(p.s) && !inString[p.s[i]] {
			i++
		}
		if i == len(p.s) {
			break
		}
		switch p.s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			raw = p.s[start:i]
			p.i = i + 1
			if !escaped {
				return raw, raw, nil
			}
			if s, ok := unescapeJSON(raw); ok {
				return raw, s, nil
			}
			p.i = start
			return "", "", p.fail("a string with JSON's escapes")
		}
	}
	p.i = len(p.s)
	return "", "", p.fail(`a closing "`)
}

func unescapeJSON(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' {
			b = append(b, c)
			continue
		}
		i++ // never the last byte: the caller found an unescaped quote after it
		switch c = s[i]; c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, ok := hex4(s[i+1:])
			if !ok {
				return "", false
			}
			i += 4
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
				if r2, ok := hex4(s[i+3:]); ok {
					if both := utf16.DecodeRune(r, r2); both != utf8.RuneError {
						r = both
						i += 6
					}
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			return "", false
		}
	}
	return string(b), true
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(s[:4], 16, 32)
	return rune(v), err == nil
}
