package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testsThere returns the names of all tests, each with the file that it stands in.
func testsThere(t *testing.T) map[string]string {
	there := map[string]string{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, root := range []string{"../api", "../cmd", "../internal", "../test"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range function.FindAllStringSubmatch(string(text), -1) {
				there[found[1]] = path
			}
			return err
		}))
	}
	return there
}

// A name with a mistake in it would leave nothing out, and one that is left out with one release has to run with the
// other.
func TestWhatCILeavesOutIsNamedOnce(t *testing.T) {
	list, err := os.ReadFile("../test/left-to-test-all.txt")
	require.NoError(t, err)
	there, seen := testsThere(t), map[string]bool{}
	line := regexp.MustCompile(`^(23|25|all) (\w+)$`)
	for text := range strings.Lines(string(list)) {
		text = strings.TrimSuffix(text, "\n")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		found := line.FindStringSubmatch(text)
		require.NotNil(t, found, "%q: neither 23, 25 nor all, and a test", text)
		name := found[2]
		require.NotEmpty(t, there[name], "%s: there is no such test", name)
		require.False(t, seen[name], "%s stands here twice", name)
		seen[name] = true
		if found[1] == "23" {
			text, err := os.ReadFile(there[name])
			require.NoError(t, err)
			require.NotContains(
				t,
				string(text),
				"//go:build !releases",
				"%s: make test-condor25 does not run it either",
				name,
			)
			require.Regexp(t, "/(e2e|schedd)/", there[name], "%s: make test-condor25 does not run it either", name)
		}
	}
}
