// Package plaintext makes a text of strangers fit to be shown, in a terminal, a page or a condition.
package plaintext

import (
	"strings"
	"unicode/utf8"
)

// Lines replaces what would change how a text is shown: a control character becomes its picture, ESC ␛, and one that
// cannot be seen, or turns the direction of writing, �, as does a byte that is no UTF-8. Line ends and tabs stay.
func Lines(text string) string {
	if isPlain(text) {
		return text
	}
	return strings.ToValidUTF8(strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case c < 0x20:
			return '␀' + c
		case c == 0x7f:
			return '␡'
		case c >= 0x80 && c < 0xa0,
			c >= 0x200b && c <= 0x200f,
			c >= 0x2028 && c <= 0x202e,
			c >= 0x2060 && c <= 0x2069,
			c == 0xfeff,
			c == 0x61c:
			return utf8.RuneError
		}
		return c
	}, text), string(utf8.RuneError))
}

// Line is Lines for what is shown on one line: line ends and tabs become blanks.
func Line(text string) string { return blanks.Replace(Lines(text)) }

var blanks = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// isPlain reports whether a text has only letters, digits and signs of ASCII, as most have.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
