package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// origin identifies the output in a directory.
type origin struct {
	HTCJob      string `json:"htcjob,omitempty"`
	HTCWorkflow string `json:"htcworkflow,omitempty"`
	UID         string `json:"uid"`
	Attempt     int    `json:"attempt"`
}

// originFile contains the origin in its first line. Each further line is the path of a file or directory that this
// command has put there, quoted as in Go: names of files need not be UTF-8.
const originFile = ".htcd-output"

// claim takes the directory for the output of one attempt, or continues with one taken for it.
func (l *landing) claim() error {
	l.wrote = map[string]bool{}
	mine, err := json.Marshal(l.origin)
	if err != nil {
		return err
	}
	manifest, err := l.root.ReadFile(originFile)
	if errors.Is(err, fs.ErrNotExist) {
		l.claimed = true
		return l.root.WriteFile(originFile, append(mine, '\n'), 0o666)
	}
	if err != nil {
		return err
	}
	theirs, paths, _ := bytes.Cut(manifest, []byte("\n"))
	if !bytes.Equal(theirs, mine) {
		return fmt.Errorf("the directory holds other output, of %s: choose another", theirs)
	}
	whole := bytes.LastIndexByte(manifest, '\n') + 1
	if whole < len(manifest) { // a line was cut off
		if err := l.truncate(int64(whole)); err != nil {
			return err
		}
	}
	for line := range bytes.Lines(paths) {
		if path, err := strconv.Unquote(string(bytes.TrimSuffix(line, []byte("\n")))); err == nil {
			l.wrote[path] = true
		}
	}
	l.claimed = true
	return nil
}

func (l *landing) truncate(size int64) error {
	file, err := l.root.OpenFile(originFile, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

// record adds paths to the manifest, before anything gets these names.
func (l *landing) record(paths []string) error {
	var lines []byte
	for _, path := range paths {
		if !l.wrote[path] {
			lines = append(strconv.AppendQuote(lines, path), '\n')
		}
	}
	file, err := l.root.OpenFile(originFile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(lines)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	for _, path := range paths {
		l.wrote[path] = true
	}
	return nil
}
