package items

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// readJSON reads token by token: a name that appears twice is an error, and numbers stay as they were written.
func readJSON(text []byte, most int, check Check) ([]string, error) {
	r := jsonReader{
		text: text, d: json.NewDecoder(bytes.NewReader(text)), into: collector{most: most, check: check},
	}
	r.d.UseNumber()
	if err := r.list(); err != nil {
		return nil, err
	}
	return r.into.items(), nil
}

type jsonReader struct {
	text []byte
	d    *json.Decoder
	into collector
}

func (r *jsonReader) list() error {
	const shape = `expected a list of objects, such as [{"ENERGY": 13000, "SEED": 1}, {"ENERGY": 13000, "SEED": 2}]`
	first, err := r.token()
	if err != nil {
		return err
	}
	if first != json.Delim('[') {
		return r.wrong("%s, found %s", shape, word(first))
	}
	for r.d.More() {
		start, err := r.token()
		if err != nil {
			return err
		}
		if start != json.Delim('{') {
			return r.wrong(
				"row %d: expected an object such as {\"ENERGY\": 13000, \"SEED\": 1}, found %s",
				len(r.into.ends)+1,
				word(start),
			)
		}
		variables, err := r.object()
		if err != nil {
			return err
		}
		if err := r.into.add(variables); err != nil {
			return r.wrong("row %d: %w", len(r.into.ends)+1, err)
		}
	}
	if _, err := r.token(); err != nil { // the closing bracket
		return err
	}
	if len(r.into.ends) == 0 {
		return r.wrong("%s, found an empty list", shape)
	}
	if _, err := r.d.Token(); !errors.Is(err, io.EOF) {
		return r.wrong("expected nothing after the list")
	}
	return nil
}

// object reads the rest of an object.
func (r *jsonReader) object() (map[string]string, error) {
	row := len(r.into.ends) + 1
	variables := map[string]string{}
	for r.d.More() {
		key, err := r.token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // the decoder accepts no other
		if _, twice := variables[name]; twice {
			return nil, r.wrong("row %d: the variable %.40q appears twice", row, name)
		}
		if len(variables) == mostNames {
			return nil, r.wrong("row %d: expected at most %d variables, found more", row, mostNames)
		}
		value, err := r.token()
		if err != nil {
			return nil, err
		}
		switch value := value.(type) {
		case string:
			variables[name] = value
		case json.Number:
			variables[name] = value.String()
		case bool:
			variables[name] = strconv.FormatBool(value)
		default:
			return nil, r.wrong(
				"row %d: %.40q: expected a string, a number, true or false, found %s",
				row,
				name,
				word(value),
			)
		}
	}
	_, err := r.token() // the closing brace
	return variables, err
}

func (r *jsonReader) token() (json.Token, error) {
	token, err := r.d.Token()
	switch syntax, is := errors.AsType[*json.SyntaxError](err); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, r.wrong("the JSON ends too early: a bracket, a brace or a quote is missing")
	case is:
		return nil, fmt.Errorf("line %d: this is not JSON: %w", lineAt(r.text, syntax.Offset), err)
	case err != nil:
		return nil, r.wrong("%w", err)
	}
	return token, nil
}

// wrong is an error about the token that was read last.
func (r *jsonReader) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", lineAt(r.text, r.d.InputOffset()), fmt.Errorf(format, args...))
}

func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(int64(len(text)), max(0, offset))], []byte("\n"))
}

// word names a token for people.
func word(token json.Token) string {
	switch t := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "a list"
	case string:
		return fmt.Sprintf("the string %.40q", t)
	}
	return fmt.Sprintf("%.40v", token)
}
