package submitfile

import (
	"errors"
	"strings"
)

// filename is $Fpdnxqabf(PATH): the parts of a path that the letters ask for.
func filename(function, path string) (string, error) {
	letters := strings.ToLower(function[1:])
	has := func(letter string) bool { return strings.Contains(letters, letter) }
	if whole := has("p") || has("d") || !has("n") && !has("x"); whole && has("f") || has("w") {
		return "", errors.New("f and w are about the machine where condor_submit runs: write the path")
	}
	if len(path) > 1 && (path[0] == '"' || path[0] == '\'') && path[len(path)-1] == path[0] {
		path = path[1 : len(path)-1]
	}
	if has("u") {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	slash := strings.LastIndexByte(path, '/') + 1
	dot := len(path)
	if i := strings.LastIndexByte(path[slash:], '.'); i > 0 {
		dot = slash + i
	}
	dirs, name, extension, bare := has("p") || has("d"), has("n"), has("x"), has("b")
	if slash == 0 && (name || extension) {
		dirs = false
	}
	start, end := 0, len(path)
	switch {
	case !dirs && !name && !extension:
	case !dirs && extension && !name:
		if start = dot; bare && dot < end {
			start++
		}
	case !dirs:
		start = slash
		if !extension {
			end = dot
		}
	default:
		if has("d") && !has("p") {
			start = directories(path[:slash], strings.Count(letters, "d"))
		}
		switch {
		case !name && !extension:
			if end = slash; bare && slash > 0 {
				end--
			}
		case !extension:
			end = dot
		}
	}
	text := path[start:max(start, end)]
	if has("q") {
		quote := `"`
		if has("a") {
			quote = "'"
		}
		text = quote + text + quote
	}
	return text, nil
}

// directories returns where the last n directories of a path, which ends in a slash, begin.
func directories(path string, n int) int {
	at := len(path)
	for ; n > 0 && at > 0; n-- {
		at = strings.LastIndexByte(path[:at-1], '/') + 1
	}
	return at
}
