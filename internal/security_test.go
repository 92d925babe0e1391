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

// A promise whose test is gone, or has another name now, is one that nobody keeps.
func TestTheTestsThatSecurityNamesExist(t *testing.T) {
	page, err := os.ReadFile("../SECURITY.md")
	require.NoError(t, err)
	named := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(page), -1)
	require.NotEmpty(t, named)
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, root := range []string{"../api", "../cmd", "../internal", "../test"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range function.FindAllStringSubmatch(string(text), -1) {
				there[found[1]] = true
			}
			return err
		}))
	}
	for _, name := range named {
		require.True(t, there[name], "SECURITY.md names %s: there is no such test", name)
	}
	for _, promise := range promises(string(page)) {
		require.Regexp(t, "`(Test|Fuzz)", promise, "it has no test")
	}
}

// promises returns the numbered items of the page.
func promises(page string) []string {
	_, page, _ = strings.Cut(page, "\n## What is promised\n")
	page, _, _ = strings.Cut(page, "\n## ")
	return regexp.MustCompile(`\n\d+\. `).Split(page, -1)[1:]
}
