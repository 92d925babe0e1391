package lifecycle

import "fmt"

// MaxNote is the maximum length of an Event's text in bytes; the apiserver refuses 1,024 and more.
const MaxNote = 1000

// MaxListed is the maximum length of a list, of jobs or nodes, in a message, a table or the log, in bytes.
const MaxListed = 200

// Shorten cuts s to at most limit bytes at a character boundary and marks the cut with "…".
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// Plural returns n and the noun in its singular or plural.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Agree is Plural with what follows: for one, or for any other number.
func Agree(n int, noun, one, many string) string {
	if n == 1 {
		many = one
	}
	return Plural(n, noun) + " " + many
}

// IsOrAre is Plural with the verb.
func IsOrAre(n int, noun string) string { return Agree(n, noun, "is", "are") }

// DeadlinePassed says that a deadline of so many seconds has passed, and who has set it.
func DeadlinePassed(seconds *int64, whose string) string {
	return fmt.Sprintf("%s passed since the submission (%s)", Agree(int(*seconds), "second", "has", "have"), whose)
}
