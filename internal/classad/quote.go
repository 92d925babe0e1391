package classad

import "strings"

// Quote prints s as a string literal in the old syntax, always on one line and always closed where it ends. The old
// syntax has no escape but \", so what it cannot express comes out changed rather than dangerous: each control
// character as a space, and a backslash at the very end, which would escape the closing quote, followed by a space.
// Callers that must preserve such strings refuse them beforehand.
func Quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 3)
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			b.WriteString(`\"`)
		case isControl(c):
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
	}
	if strings.HasSuffix(s, `\`) {
		b.WriteByte(' ')
	}
	b.WriteByte('"')
	return b.String()
}

// quoteNew prints s as a string literal in the new syntax.
func quoteNew(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case isControl(c):
			b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func isControl(c byte) bool { return c < ' ' || c == 0x7f }
