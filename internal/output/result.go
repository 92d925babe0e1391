package output

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// Result returns what a file of each of the first procs of an attempt holds, as printable UTF-8 of at most size bytes:
// of one proc its text without the last line end, of several one line each, empty where there is no such file.
// fs.ErrNotExist if the only proc has none.
func (s Store) Result(a Attempt, procs int, file string, size int) (string, error) {
	var lines []string
	for proc, left := 0, size; proc < procs && left > 0; proc++ {
		text, err := s.head(a, proc, file, left)
		if err != nil && (procs == 1 || !errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
		if procs > 1 {
			text = strings.ReplaceAll(text, "\n", " ")
		}
		lines = append(lines, text)
		left -= len(text) + 1
	}
	return strings.Join(lines, "\n"), nil
}

// head returns the beginning of a file, without a line end at its end.
func (s Store) head(a Attempt, proc int, file string, size int) (string, error) {
	f, err := s.Open(a, proc, file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf, err := io.ReadAll(io.LimitReader(f, int64(size)+utf8.UTFMax))
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(strings.Map(printable, string(buf)), "\n")
	for len(text) > size {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text, nil
}
