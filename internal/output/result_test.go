package output_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/output"
)

func TestAResultIsTextOfAtMostThatSize(t *testing.T) {
	const none = "\x00none"
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"one":                        {[]string{"a\nb\n"}, "a\nb"},
		"one without a line end":     {[]string{"{}"}, "{}"},
		"one with two":               {[]string{"a\n\n"}, "a\n"},
		"one of DOS":                 {[]string{"a\r\nb\r\n"}, "a\nb"},
		"an empty one":               {[]string{""}, ""},
		"several":                    {[]string{"a\n", "b", "c d\ne\n"}, "a\nb\nc d e"},
		"several, one without":       {[]string{"a", none, "c"}, "a\n\nc"},
		"no text":                    {[]string{"a\x00\x1b[2J\xff"}, "a??[2J?"},
		"as long as can be":          {[]string{strings.Repeat("a", 64) + "\n"}, strings.Repeat("a", 64)},
		"too long":                   {[]string{strings.Repeat("a", 63) + "ä"}, strings.Repeat("a", 63)},
		"too long together":          {[]string{strings.Repeat("a", 60), "bcdef", "g"}, strings.Repeat("a", 60) + "\nbcd"},
		"far too long":               {[]string{strings.Repeat("ä", 5000)}, strings.Repeat("ä", 32)},
		"binary that grows in UTF-8": {[]string{strings.Repeat("\xff", 100)}, strings.Repeat("?", 64)},
	} {
		store := output.Store{Root: t.TempDir()}
		a := output.Attempt{Namespace: "ns", Name: "job", Number: 1}
		for proc, text := range c.files {
			dir := filepath.Join(store.Root, "ns", "job", "1", strconv.Itoa(proc))
			require.NoError(t, os.MkdirAll(dir, 0o755))
			if text != none {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "r"), []byte(text), 0o644))
			}
		}
		of := func(file string) func(int) (*os.File, error) {
			return func(proc int) (*os.File, error) { return store.Open(a, proc, file) }
		}
		got, err := output.Result(len(c.files), 64, of("r"))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
		require.True(t, utf8.ValidString(got), name)
		_, err = output.Result(1, 64, of("other"))
		require.ErrorIs(t, err, fs.ErrNotExist, name)
	}
}
