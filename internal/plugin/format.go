package plugin

import (
	"encoding/json"
	"errors"
	"io"
)

// checkRead checks the flags of a command that reads something of an attempt.
func checkRead(format string, attempt int) error {
	switch {
	case format != "table" && format != "json":
		return Usage{errors.New("--output: want table or json")}
	case attempt < 0:
		return Usage{errors.New("--attempt: want a number from 1 on")}
	}
	return nil
}

// jsonLines writes values as JSON, each on a line.
func jsonLines(out io.Writer) *json.Encoder {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return lines
}
