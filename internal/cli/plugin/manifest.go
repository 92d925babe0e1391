package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// origin identifies the output in a directory.
type origin struct {
	HTCJob      string `json:"htcjob,omitempty"`
	HTCWorkflow string `json:"htcworkflow,omitempty"`
	UID         string `json:"uid"`
	Attempt     int    `json:"attempt"`
}

// originFile contains the origin in its first line. Each further line is the path of a file or directory that this
// command has put there, quoted as in Go: names of files need not be UTF-8. Where spec.landing has given it, the number
// of the job follows.
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
		l.recall(string(bytes.TrimSuffix(line, []byte("\n"))))
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
	if err := l.write(lines); err != nil {
		return err
	}
	for _, path := range paths {
		l.wrote[path] = true
	}
	return nil
}

// write adds lines to the manifest.
func (l *landing) write(lines []byte) error {
	file, err := l.root.OpenFile(originFile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(lines)
	return errors.Join(err, file.Close())
}

// recall reads a line of the manifest: a path, and the job's number where spec.landing has given it.
func (l *landing) recall(line string) {
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return
	}
	path, err := strconv.Unquote(quoted)
	if err != nil {
		return
	}
	if proc, err := strconv.Atoi(strings.TrimPrefix(line[len(quoted):], " ")); err == nil {
		l.own(path, proc)
		return
	}
	l.wrote[path] = true
}
