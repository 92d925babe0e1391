package plugin

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
)

// jsonLines writes values as JSON, each on a line.
func jsonLines(out io.Writer) *json.Encoder {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return lines
}

// jsonValues yields the values that stand in an answer one after another, and what has interrupted it.
func jsonValues[T any](answer io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for values := json.NewDecoder(answer); ; {
			var one T
			err := values.Decode(&one)
			if errors.Is(err, io.EOF) || !yield(one, err) || err != nil {
				return
			}
		}
	}
}
