package internal_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const maxColumns = 120

// Only what cannot be broken may be longer: lines with a string, markers of generators, and drawings in comments.
func TestLinesHaveAtMost120Columns(t *testing.T) {
	n := 0
	for _, root := range []string{"../api", "../clients", "../cmd", "../internal", "../test", "../tools"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_templ.go") {
				return err
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			hasString := linesWithStrings(text)
			for i, line := range strings.Split(string(text), "\n") {
				n++
				columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
				if columns <= maxColumns || hasString[i+1] {
					continue
				}
				comment, is := strings.CutPrefix(strings.TrimLeft(line, "\t"), "//")
				unbroken := is && (strings.HasPrefix(comment, "\t") || strings.HasPrefix(comment, " +kubebuilder:"))
				require.True(t, unbroken, "%s:%d has %d columns", path, i+1, columns)
			}
			return nil
		}))
	}
	require.Positive(t, n)
}

// linesWithStrings returns the numbers of the lines that hold a string or a part of one.
func linesWithStrings(text []byte) map[int]bool {
	lines := map[int]bool{}
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind == token.STRING {
			for i := range strings.Count(literal, "\n") + 1 {
				lines[file.Line(pos)+i] = true
			}
		}
	}
}
