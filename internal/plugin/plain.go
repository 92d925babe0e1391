package plugin

import (
	"strings"
	"unicode"
)

// Plain is a text that others have a part in, such as an error of the server's, without what would make a terminal act.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return -1
	}, text)
}
