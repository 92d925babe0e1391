package internal_test

import (
	"os"
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
	there := testsThere(t)
	for _, name := range named {
		require.NotEmpty(t, there[name], "SECURITY.md names %s: there is no such test", name)
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
