package submitfile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFile is far more than anybody writes: a table of 100,000 rows belongs into a file of its own.
const maxFile = 16 << 20

// maxLine is more than a program can be given as arguments.
const maxLine = 1 << 20

// File is a submit description file, split into statements.
type File struct {
	name  string
	lines []line
}

// line is one statement: physical lines that a backslash joins.
type line struct {
	number int // of its first physical line
	text   string
}

// Parse reads the text of a submit description file, or of one that it includes. The name is for messages.
func Parse(name string, text []byte) (*File, error) {
	switch {
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s: expected at most %d MiB, found %d bytes: is it a submit file?", name, maxFile>>20,
			len(text))
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return nil, fmt.Errorf("%s, line 1: found a byte order mark, which condor_submit refuses: "+
			"save the file as UTF-8 without one", name)
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return nil, fmt.Errorf("%s, line 1: found UTF-16: save the file as UTF-8", name)
	}
	if at := bytes.IndexByte(text, 0); at >= 0 {
		return nil, fmt.Errorf(
			"%s, line %d: found a NUL character: is it a submit file?",
			name,
			1+bytes.Count(text[:at],
				[]byte("\n")),
		)
	}
	number := 0
	for l := range bytes.Lines(text) {
		number++
		comment := bytes.HasPrefix(bytes.TrimSpace(l), []byte("#"))
		switch {
		case len(l) > maxLine:
			return nil, fmt.Errorf(
				"%s, line %d: expected at most %d KiB in a line, found %d bytes",
				name,
				number,
				maxLine>>10,
				len(l),
			)
		case !comment && !utf8.Valid(l):
			return nil, fmt.Errorf(
				"%s, line %d: found characters that are not UTF-8: save the file as UTF-8",
				name,
				number,
			)
		case !comment && bytes.ContainsFunc(l, isControl):
			return nil, fmt.Errorf("%s, line %d: found a control character: is it a submit file?", name, number)
		}
	}
	return &File{name: name, lines: split(strings.ToValidUTF8(string(text), "?"))}, nil
}

// isControl reports whether a character has no place in a text. The unit separator separates the columns of tables.
func isControl(r rune) bool { return r < ' ' && !isSpace(r) && r != 0x1f }

// isSpace is C's isspace.
func isSpace(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) }

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// split joins continued lines. Empty lines and comments stay: a table's empty line is a row.
func split(text string) []line {
	if text == "" {
		return nil
	}
	physical := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var lines []line
	for i := 0; i < len(physical); i++ {
		l := line{number: i + 1}
		var parts []string
		for ; ; i++ {
			part := trim(physical[i])
			comment := strings.HasPrefix(part, "#")
			more := strings.HasSuffix(part, `\`)
			switch {
			case comment && parts == nil: // not continued
				more = false
			case comment && !more: // condor_submit takes all of it but the last character for white space
				_, size := utf8.DecodeLastRuneInString(part)
				part = part[len(part)-size:]
			case comment:
				part = ""
			case more:
				part = strings.TrimSuffix(part, `\`)
			}
			parts = append(parts, part)
			if !more || i+1 == len(physical) {
				break
			}
		}
		l.text = strings.Join(parts, "")
		lines = append(lines, l)
	}
	return lines
}
