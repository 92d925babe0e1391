package plugin

import (
	"strings"
	"unicode"
)

// Plain returns a text from others, such as a server's error, without terminal control sequences.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return -1
	}, text)
}
