package convert

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote writes a word so that sh takes it as it is.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// A mark stands for a value that differs from job to job while a file's macros are replaced; no file holds these
// characters.
const markOpen, markClose = "\x01", "\x02"

var markRE = regexp.MustCompile(markOpen + `([^` + markClose + `]*)` + markClose)

func mark(name string) string { return markOpen + name + markClose }

// piece is a part of a word: text, or the value of a variable.
type piece struct{ text, variable string }

// template is a word with variables in it.
type template []piece

// parseTemplate splits a word with marks.
func parseTemplate(word string) template {
	var t template
	at := 0
	for _, m := range markRE.FindAllStringSubmatchIndex(word, -1) {
		if m[0] > at {
			t = append(t, piece{text: word[at:m[0]]})
		}
		t = append(t, piece{variable: word[m[2]:m[3]]})
		at = m[1]
	}
	if at < len(word) {
		t = append(t, piece{text: word[at:]})
	}
	return t
}

// fill is the word with the variables' values.
func (t template) fill(value func(variable string) string) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		if p.variable != "" {
			b.WriteString(value(p.variable))
		}
	}
	return b.String()
}

// shell is the word as sh is to read it; name is that of the variable in the environment.
func (t template) shell(name func(variable string) string) string {
	if len(t) == 0 {
		return "''"
	}
	var b strings.Builder
	for _, p := range t {
		if p.variable != "" {
			b.WriteString(`"${` + name(p.variable) + `}"`)
			continue
		}
		b.WriteString(quote(p.text))
	}
	return b.String()
}
