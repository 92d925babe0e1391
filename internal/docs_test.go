package internal

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// What looks like a command in a document stands in a sh block, which a test runs or which says why it is not run.
func TestNoCommandOfTheDocsIsLeftOut(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```sh\n.*?^```\n")
	command := regexp.MustCompile(`(?m)^(kubectl|htcd|make|docker|curl|condor_\w+) .*`)
	files, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	// Developers, promtool's tests and the measurements run theirs.
	others := []string{"development.md", "metrics.md", "performance.md"}
	for _, file := range files {
		if slices.Contains(others, filepath.Base(file)) {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(
			t,
			command.FindAllString(block.ReplaceAllString(string(text), ""), -1),
			"%s: a command outside of a sh block",
			file,
		)
	}
}
