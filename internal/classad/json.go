package classad

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ReadJSON reads ads in the form of condor_q -json and condor_history -json: one array of objects. Empty input means no
// ads, as condor_q prints it. An undefined attribute is null, an expression the string "\/Expr(...)\/". It calls fn for
// every ad, which fn may keep. A string is cut after maxString bytes, so that memory does not grow with the input. An
// error of fn ends the reading and is returned unchanged. An array that is not closed is an error, io.ErrUnexpectedEOF,
// after fn saw all complete ads.
func ReadJSON(r io.Reader, fn func(Ad) error) error {
	d := &jsonReader{br: bufio.NewReaderSize(r, 64<<10), line: 1}
	c, err := d.peek()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if c != '[' {
		return d.fail(c, `"["`)
	}
	d.skip()
	size := 16
	for first := true; ; first = false {
		c, err := d.peek()
		if err != nil {
			return d.cut(err)
		}
		if c == ']' {
			d.skip()
			break
		}
		if !first {
			if c != ',' {
				return d.fail(c, `"," or "]" after an ad`)
			}
			d.skip()
			if c, err = d.peek(); err != nil {
				return d.cut(err)
			}
		}
		if c != '{' {
			return d.fail(c, `"{", the begin of an ad`)
		}
		line := d.line
		text, err := d.object()
		if err != nil {
			return d.cut(err)
		}
		p := &jsonParser{s: text, line: line}
		ad, err := p.ad(size)
		if err != nil {
			return err
		}
		size = len(ad)
		if err := fn(ad); err != nil {
			return err
		}
	}
	if c, err := d.peek(); err == nil {
		return d.fail(c, "the end after \"]\"")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// jsonReader finds where each object of the stream ends.
type jsonReader struct {
	br   *bufio.Reader
	line int
	buf  []byte
	kept keeper
}

// peek returns the next byte that is not a space, without consuming it.
func (d *jsonReader) peek() (byte, error) {
	for {
		c, err := d.br.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == '\n':
			d.line++
		case !isSpace(c):
			return c, d.br.UnreadByte()
		}
	}
}

func (d *jsonReader) skip() { _, _ = d.br.Discard(1) }

func (d *jsonReader) fail(c byte, expected string) error {
	return fmt.Errorf("line %d: found %q, expected %s", d.line, c, expected)
}

// cut replaces the end of the stream by the error it is here.
func (d *jsonReader) cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: the ads are cut short: %w", d.line, io.ErrUnexpectedEOF)
	}
	return err
}

// object reads from "{" to the "}" that belongs to it.
func (d *jsonReader) object() (string, error) {
	d.buf, d.kept = d.buf[:0], keeper{}
	var at place
	lines := 0
	for {
		if _, err := d.br.Peek(1); err != nil {
			return "", err
		}
		chunk, _ := d.br.Peek(d.br.Buffered())
		end, ended := at.move(chunk)
		chunk = chunk[:end]
		lines += bytes.Count(chunk, []byte{'\n'})
		var text string
		switch {
		case ended && len(d.buf) == 0: // usually the whole object is buffered
			text = string(chunk)
		default:
			if d.buf = d.kept.keep(d.buf, chunk); len(d.buf) > maxAd {
				return "", fmt.Errorf("line %d: an ad of more than %d bytes", d.line, maxAd)
			}
			if ended {
				text = string(d.buf)
			}
		}
		_, _ = d.br.Discard(len(chunk))
		if ended {
			d.line += lines
			return text, nil
		}
	}
}

// place is the position in an object's text, as far as it matters for finding the end.
type place struct {
	depth             int
	inString, escaped bool
}

// Bytes that end a run without meaning here, outside strings and inside.
var (
	structure = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}
	inString  = [256]bool{'"': true, '\\': true}
)

// move goes through a chunk and returns the index after the object's last byte, if that is in it, otherwise the chunk's
// length.
func (p *place) move(chunk []byte) (end int, ended bool) {
	for i := 0; i < len(chunk); i++ {
		switch {
		case p.escaped:
			p.escaped = false
			continue
		case p.inString:
			for i < len(chunk) && !inString[chunk[i]] {
				i++
			}
		default:
			for i < len(chunk) && !structure[chunk[i]] {
				i++
			}
		}
		if i == len(chunk) {
			break
		}
		switch c := chunk[i]; {
		case c == '\\':
			p.escaped = true
		case c == '"':
			p.inString = !p.inString
		case c == '{' || c == '[':
			p.depth++
		default:
			if p.depth--; p.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(chunk), false
}

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
		if strings.HasPrefix(raw, exprOpen) && strings.HasSuffix(raw, exprClose) && len(raw) >= len(exprOpen)+len(exprClose) {
			return Value{kind: Unevaluated, num: newText, str: strings.TrimSpace(s[len("/Expr(") : len(s)-len(")/")])}, nil
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
