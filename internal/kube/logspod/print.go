package logspod

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The suffixes of a text's files.
const (
	toStdout = "out"
	toStderr = "err"
)

// Print writes a text to the two streams. It pauses at each change from one to the other: the log's writer reads them
// through two pipes, and chunks that arrive together might change places.
func Print(dir string, stdout, stderr io.Writer, turn time.Duration) error {
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]*.*")) // sorted
	if err != nil {
		return err
	}
	before := ""
	for _, file := range files {
		suffix := strings.TrimPrefix(filepath.Ext(file), ".")
		to, known := map[string]io.Writer{toStdout: stdout, toStderr: stderr}[suffix]
		if !known {
			return fmt.Errorf("%s: expected a name that ends with .%s or .%s", file, toStdout, toStderr)
		}
		text, err := os.ReadFile(file) // #nosec G304 -- what this is for
		if err != nil {
			return err
		}
		if before != "" && before != suffix {
			time.Sleep(turn)
		}
		before = suffix
		if _, err := to.Write(text); err != nil {
			return err
		}
	}
	return nil
}
