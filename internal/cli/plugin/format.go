package plugin

import (
	"encoding/json"
	"io"
)

// jsonLines writes values as JSON, each on a line.
func jsonLines(out io.Writer) *json.Encoder {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return lines
}
