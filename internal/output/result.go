package output

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// Result returns what a file of each of so many jobs holds, which open opens, as printable UTF-8 of at most size bytes:
// of one job its text without the last line end, of several one line each, empty where there is no such file.
// fs.ErrNotExist if the only job has none.
func Result(jobs, size int, open func(job int) (*os.File, error)) (string, error) {
	var lines []string
	for job, left := 0, size; job < jobs && left > 0; job++ {
		text, err := head(job, left, open)
		if err != nil && (jobs == 1 || !errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
		if jobs > 1 {
			text = strings.ReplaceAll(text, "\n", " ")
		}
		lines = append(lines, text)
		left -= len(text) + 1
	}
	return strings.Join(lines, "\n"), nil
}

// head returns the beginning of a file, without a line end at its end.
func head(job, size int, open func(job int) (*os.File, error)) (string, error) {
	f, err := open(job)
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
