package classad

import (
	"fmt"
	"strings"
)

// ParseAd reads one ad in the form that Ad.String prints, that of condor_q -long: a line "Name = expression" for each
// attribute. Empty lines are skipped.
func ParseAd(text string) (Ad, error) {
	var ad Ad
	line := 0
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimRight(l, "\r\n")
		if l == "" {
			continue
		}
		name, value, ok := strings.Cut(l, " = ")
		if !ok || name == "" {
			return nil, fmt.Errorf("line %d: found %q, expected \"Name = value\"", line, clip(l))
		}
		if n, raw, escaped := endOfQuoted(name, '\'', true); name[0] == '\'' && n == len(name) {
			if name = raw; escaped {
				name = unescape(raw, true)
			}
		}
		ad = append(ad, Attr{Name: name, Value: ParseValue(value)})
	}
	return ad, nil
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
