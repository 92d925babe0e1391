package classad

import "unicode/utf8"

// maxString is how much of a string is read, in bytes. Nobody reads a longer reason, and HTCondor does not bound what a
// user can write into an ad.
const maxString = 8 << 10

// cutString is the beginning of a string.
func cutString(s string) string {
	if len(s) <= maxString {
		return s
	}
	end := maxString
	for end > maxString-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// maxEscaped is how much of a string's text is kept: as an escape sequence a byte takes up to six.
const maxEscaped = 6 * maxString

// keeper drops the rest of each string of an object's text. It cuts no escape sequence and no letter.
type keeper struct {
	inString, cut bool
	escape        int // bytes of an escape sequence to come: more than 4 right after the backslash
	length        int // kept of the string
}

// keep appends a chunk of the text to what is kept.
func (k *keeper) keep(kept, chunk []byte) []byte {
	for _, c := range chunk {
		begins := k.escape == 0 && utf8.RuneStart(c)
		switch {
		case !k.inString:
			k.inString, k.cut, k.length = c == '"', false, 0
			kept = append(kept, c)
			continue
		case k.escape > 4 && c == 'u':
			k.escape = 4
		case k.escape > 4:
			k.escape = 0
		case k.escape > 0:
			k.escape--
		case c == '"':
			k.inString = false
			kept = append(kept, c)
			continue
		case c == '\\':
			k.escape = 5
		}
		if k.cut = k.cut || begins && k.length >= maxEscaped; !k.cut {
			kept = append(kept, c)
			k.length++
		}
	}
	return kept
}
