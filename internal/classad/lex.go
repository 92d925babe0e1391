package classad

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError is the place where an expression stops making sense, and what was expected there.
type SyntaxError struct {
	Line, Column int    // from 1; the column counts characters
	Offset       int    // in bytes, from 0
	Found        string // the offending word, in quotes, or "the end"
	Expected     string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: found %s, expected %s", e.Line, e.Column, e.Found, e.Expected)
}

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokQuotedName
	tokNumber
	tokString
	tokOp // operators and punctuation
)

type token struct {
	kind tokenKind
	off  int
	text string // as written; for names without quotes and escapes
	val  Value  // of numbers and strings
}

// lexer cuts an expression into tokens. It never looks back, and stops at its first error.
type lexer struct {
	src string
	off int
	// newSyntax: every backslash in a string is an escape. In the old syntax, which
	// condor_submit, -constraint and -long use, only \" is one.
	newSyntax bool
}

// ops, longest first.
var ops = []string{
	"=?=", "=!=", ">>>",
	"==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "?:",
	"<", ">", "+", "-", "*", "/", "%", "!", "~", "&", "|", "^", "?", ":",
	"(", ")", "[", "]", "{", "}", ",", ";", ".", "=",
}

func (l *lexer) next() (token, error) {
	for l.off < len(l.src) && isSpace(l.src[l.off]) {
		l.off++
	}
	start := l.off
	if start == len(l.src) {
		return token{kind: tokEnd, off: start}, nil
	}
	switch c := l.src[start]; {
	case isNameStart(c):
		for l.off < len(l.src) && isNamePart(l.src[l.off]) {
			l.off++
		}
		return token{kind: tokName, off: start, text: l.src[start:l.off]}, nil
	case isDigit(c), c == '.' && start+1 < len(l.src) && isDigit(l.src[start+1]):
		return l.number()
	case c == '"':
		return l.quoted('"', tokString)
	case c == '\'':
		return l.quoted('\'', tokQuotedName)
	}
	for _, op := range ops {
		if strings.HasPrefix(l.src[start:], op) {
			l.off += len(op)
			return token{kind: tokOp, off: start, text: op}, nil
		}
	}
	r, n := utf8.DecodeRuneInString(l.src[start:])
	if r == utf8.RuneError && n == 1 {
		return token{}, l.fail(start, fmt.Sprintf("the byte 0x%02x", l.src[start]), "text in UTF-8")
	}
	return token{}, l.fail(start, strconv.QuoteRune(r), "a name, number, string or operator")
}

// number reads digits with an optional fraction and exponent. HTCondor refuses
// the hexadecimal, octal and suffixed forms (2G) of the language's manual.
func (l *lexer) number() (token, error) {
	start := l.off
	real := false
	l.digits()
	if l.off < len(l.src) && l.src[l.off] == '.' {
		real = true
		l.off++
		digits := l.off
		if l.digits(); l.off == digits {
			return token{}, l.fail(start, strconv.Quote(l.src[start:l.off]), "digits after the point")
		}
	}
	if l.off < len(l.src) && l.src[l.off]|0x20 == 'e' {
		mark := l.off
		l.off++
		if l.off < len(l.src) && (l.src[l.off] == '+' || l.src[l.off] == '-') {
			l.off++
		}
		digits := l.off
		if l.digits(); l.off == digits {
			l.off = mark
		} else {
			real = true
		}
	}
	t := token{kind: tokNumber, off: start, text: l.src[start:l.off]}
	if l.off < len(l.src) && isNamePart(l.src[l.off]) {
		for l.off < len(l.src) && isNamePart(l.src[l.off]) {
			l.off++
		}
		return token{}, l.fail(start, strconv.Quote(l.src[start:l.off]), "a plain decimal number")
	}
	if !real {
		i, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil || len(t.text) > 1 && t.text[0] == '0' {
			return token{}, l.fail(
				start,
				strconv.Quote(t.text),
				"an integer that fits into 64 bits, without leading zeros",
			)
		}
		t.val = IntValue(i)
		return t, nil
	}
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		return token{}, l.fail(start, strconv.Quote(t.text), "a number that fits into 64 bits")
	}
	t.val = RealValue(f)
	return t, nil
}

func (l *lexer) digits() {
	for l.off < len(l.src) && isDigit(l.src[l.off]) {
		l.off++
	}
}

// quoted reads a string or a quoted name.
func (l *lexer) quoted(q byte, kind tokenKind) (token, error) {
	start := l.off
	newSyntax := l.newSyntax || kind == tokQuotedName
	n, raw, escaped := endOfQuoted(l.src[start:], q, newSyntax)
	if n < 0 {
		return token{}, l.fail(
			start,
			"an unfinished "+map[byte]string{'"': "string", '\'': "name"}[q],
			"a closing "+string(q),
		)
	}
	l.off += n
	if escaped {
		raw = unescape(raw, newSyntax)
	}
	if strings.IndexByte(raw, 0) >= 0 {
		return token{}, l.fail(start, "a NUL byte", "text without one")
	}
	if kind == tokQuotedName {
		if raw == "" {
			return token{}, l.fail(start, "an empty name", "a name")
		}
		return token{kind: kind, off: start, text: raw}, nil
	}
	return token{kind: kind, off: start, text: l.src[start:l.off], val: StringValue(raw)}, nil
}

// endOfQuoted finds the quoted text at the start of s: how many bytes it takes with its quotes (-1: it never ends), the
// text between them, and whether that contains an escape. In the old syntax a backslash is plain unless a quote
// follows, and even then if that quote is the last of the expression: "x\" is x and a backslash.
func endOfQuoted(s string, q byte, newSyntax bool) (n int, raw string, escaped bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if !newSyntax && i+1 < len(s) && s[i+1] == q && strings.TrimSpace(s[i+2:]) == "" {
				return i + 2, s[1 : i+1], escaped
			}
			if newSyntax || i+1 < len(s) && s[i+1] == q {
				escaped = true
				i++
			}
		case q:
			return i + 1, s[1:i], escaped
		}
	}
	return -1, "", escaped
}

// unescape resolves backslashes: in the old syntax only one before a quote.
func unescape(s string, newSyntax bool) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) || !newSyntax && s[i+1] != '"' {
			b = append(b, c)
			continue
		}
		i++
		switch c = s[i]; c {
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'a':
			c = '\a'
		case 'v':
			c = '\v'
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v, most := 0, 2
			if c <= '3' {
				most = 3
			}
			j := i
			for ; j < len(s) && j < i+most && s[j] >= '0' && s[j] <= '7'; j++ {
				v = v*8 + int(s[j]-'0')
			}
			i = j - 1
			c = byte(v)
		}
		b = append(b, c)
	}
	return string(b)
}

// fail makes the error for the offset off.
func (l *lexer) fail(off int, found, expected string) *SyntaxError {
	line, col := Position(l.src, off)
	return &SyntaxError{Line: line, Column: col, Offset: off, Found: found, Expected: expected}
}

// Position turns a byte offset into line and column, both from 1; columns count
// characters.
func Position(src string, off int) (line, column int) {
	before := src[:off]
	line = 1 + strings.Count(before, "\n")
	column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return line, column
}

// IsName reports whether s can be written as an attribute's name without quotes.
func IsName(s string) bool {
	if s == "" || !isNameStart(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !isNamePart(s[i]) {
			return false
		}
	}
	return !reserved[strings.ToLower(s)]
}

// reserved are the names that are values or operators.
var reserved = map[string]bool{"true": true, "false": true, "undefined": true, "error": true, "is": true, "isnt": true}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}
func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isNameStart(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }
func isNamePart(c byte) bool  { return isNameStart(c) || isDigit(c) }
