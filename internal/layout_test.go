// Package internal_test holds the layout of the tree to its rules.
package internal_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are the folders of Go packages, from the lowest: a package imports only from its own layer and from those below.
var layers = []string{
	"api", "internal/classad", "internal/schedd", "internal/ledger", "internal/notify", "internal/target",
	"internal/admission", "internal/artifact", "internal/output", "internal/inputs", "internal/crosscheck",
	"internal/kube", "internal/metrics", "internal/serve", "internal/cli", "internal/daemon", "cmd",
}

const module = "htc.cern.ch/htcd/"

func layerOf(pkg string) int {
	return slices.IndexFunc(layers, func(l string) bool { return pkg == module+l || strings.HasPrefix(pkg, module+l+"/") })
}

func TestNoImportRunsUpwards(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = ".."
	text, err := list.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if words[0] == module+"internal" {
			continue // this package
		}
		from := layerOf(words[0])
		require.GreaterOrEqual(t, from, 0, "%s belongs to no layer", words[0])
		for _, to := range words[1:] {
			if strings.HasPrefix(to, module) {
				require.LessOrEqual(t, layerOf(to), from, "%s imports %s, which lies above it", words[0], to)
			}
		}
	}
}

func TestTheTreeHasFewFolders(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	folders := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
	require.LessOrEqual(t, len(folders), 16)
}

func TestEachPathThatThePagesNameExists(t *testing.T) {
	path := regexp.MustCompile("`((?:api|cmd|deploy|docs|examples|internal|test|tools)/[\\w./-]+)`")
	pages := []string{"../README.md", "../ARCHITECTURE.md", "../SECURITY.md", "../docs/development.md"}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range path.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat("../" + m[1])
			require.NoError(t, err, page)
		}
	}
}
