package submitfile

import (
	"errors"
	"fmt"
	"strings"
)

// Arguments splits the value of arguments, in its old or new syntax, into the words that the program gets.
func Arguments(value string) ([]string, error) {
	if raw, quoted, err := unquote(value); quoted || err != nil {
		if err != nil {
			return nil, err
		}
		return splitWords(raw)
	}
	raw, err := unescape(value)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(raw, isSpace), nil
}

// Variable is one of environment.
type Variable struct{ Name, Value string }

// Environment splits the value of environment, in its old or new syntax. A variable that is set twice has its last
// value.
func Environment(value string) ([]Variable, error) {
	raw, quoted, err := unquote(value)
	if err != nil {
		return nil, err
	}
	var settings []string
	if quoted {
		if settings, err = splitWords(raw); err != nil {
			return nil, err
		}
	} else {
		delimiter := ";"
		if value = strings.TrimLeftFunc(value, isSpace); value != "" && strings.ContainsRune("|;", rune(value[0])) {
			delimiter, value = value[:1], value[1:]
		}
		for part := range strings.SplitSeq(strings.ReplaceAll(value, "\n", delimiter), delimiter) {
			if part = strings.TrimLeftFunc(part, isSpace); part != "" {
				settings = append(settings, part)
			}
		}
	}
	var variables []Variable
	at := map[string]int{}
	for _, s := range settings {
		name, v, is := strings.Cut(s, "=")
		switch {
		case !is && strings.HasPrefix(s, "$$"):
			return nil, fmt.Errorf("%q is known only once the job has a machine", s)
		case !is || name == "":
			return nil, fmt.Errorf("expected NAME=VALUE, found %q", s)
		}
		if i, twice := at[name]; twice {
			variables[i].Value = v
			continue
		}
		at[name] = len(variables)
		variables = append(variables, Variable{name, v})
	}
	return variables, nil
}

// unquote returns what a value in double quotes holds, which is in the new syntax.
func unquote(value string) (raw string, quoted bool, err error) {
	value = trim(value)
	if !strings.HasPrefix(value, `"`) {
		return "", false, nil
	}
	var b strings.Builder
	for i := 1; i < len(value); i++ {
		switch {
		case value[i] != '"':
			b.WriteByte(value[i])
		case strings.HasPrefix(value[i+1:], `"`):
			b.WriteByte('"')
			i++
		case i+1 < len(value):
			return "", true, fmt.Errorf(
				"found %q after the closing double quote: write a double quote twice if it belongs to the value",
				value[i+1:],
			)
		default:
			return b.String(), true, nil
		}
	}
	return "", true, errors.New("the double quote at the beginning is not closed")
}

// unescape reads the old syntax of arguments: \" is a double quote.
func unescape(value string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '"':
			return "", fmt.Errorf(
				`found a double quote in the old syntax at %q: write \", or the whole in double quotes`,
				value[i:],
			)
		case strings.HasPrefix(value[i:], `\"`):
			b.WriteByte('"')
			i++
		default:
			b.WriteByte(value[i])
		}
	}
	return b.String(), nil
}

// splitWords splits at white space; single quotes hold words together, and two of them in such are one.
func splitWords(raw string) ([]string, error) {
	var words []string
	var b strings.Builder
	in := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\'':
			in = true
			open := i
			for i++; ; i++ {
				if i >= len(raw) {
					return nil, fmt.Errorf("the single quote at %q is not closed", raw[open:])
				}
				if raw[i] != '\'' {
					b.WriteByte(raw[i])
				} else if strings.HasPrefix(raw[i+1:], "'") {
					b.WriteByte('\'')
					i++
				} else {
					break
				}
			}
		case isSpace(rune(c)):
			if in {
				words = append(words, b.String())
				b.Reset()
			}
			in = false
		default:
			in = true
			b.WriteByte(c)
		}
	}
	if in {
		words = append(words, b.String())
	}
	return words, nil
}
