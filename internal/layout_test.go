// Package internal_test holds the layout of the tree to its rules.
package internal_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are the folders of Go packages, from the lowest: a package imports only from its own layer and from those
// below.
var layers = []string{
	"api", "internal/classad", "internal/schedd", "internal/ledger", "internal/notify", "internal/target",
	"internal/admission", "internal/artifact", "internal/output", "internal/inputs", "internal/crosscheck",
	"internal/kube", "internal/metrics", "internal/serve", "internal/convert", "internal/cli", "internal/daemon",
	"cmd", "clients",
}

const module = "htc.cern.ch/htcd/"

func layerOf(pkg string) int {
	return slices.IndexFunc(
		layers,
		func(l string) bool { return pkg == module+l || strings.HasPrefix(pkg, module+l+"/") },
	)
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

// Go's templates call methods by names that only the running program knows, so the linker would keep every method of
// every type: half as much again of the program.
func TestNothingOfHtcdUsesGosTemplates(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, "./...")
	list.Dir = ".."
	text, err := list.Output()
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^(html|text)/template$`, string(text))
}

// A constraint is put together of those of internal/schedd/condor.
func TestOnlyHTCondorsSideWritesClassAds(t *testing.T) {
	side := regexp.MustCompile(`^(schedd|classad)/|_test\.go$`)
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || side.MatchString(path) {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotRegexp(t, `=\?=|=!=`, string(text), path)
		return err
	}))
}

func TestTheTreeHasFewFolders(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	folders := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
	require.LessOrEqual(t, len(folders), 16)
}

func TestCmdHtcdIsFlagsAndRun(t *testing.T) {
	files, err := filepath.Glob("../cmd/htcd/*.go")
	require.NoError(t, err)
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines += strings.Count(string(text), "\n")
	}
	require.Positive(t, lines)
	require.LessOrEqual(t, lines, 600)
}

func TestEachPathThatThePagesNameExists(t *testing.T) {
	path := regexp.MustCompile("`((?:api|cmd|deploy|docs|examples|internal|test|tools)/[\\w./-]+)`")
	var pages []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/decisions/*.md"} {
		some, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, some, pattern)
		pages = append(pages, some...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range path.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat("../" + m[1])
			require.NoError(t, err, page)
		}
	}
}

func TestEachDecisionHasANumberADateAndALineInTheList(t *testing.T) {
	list, err := os.ReadFile("../docs/decisions/README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../docs/decisions/[0-9]*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	head := regexp.MustCompile(`^# (\d+)\. (.+)\n\n(\d{4}-\d\d-\d\d)\n\n`)
	for n, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		m := head.FindStringSubmatch(string(text))
		require.NotNil(t, m, page)
		require.Equal(t, strconv.Itoa(n+1), m[1], page)
		require.Contains(t, string(list), fmt.Sprintf("- %s [%s. %s](%s)\n", m[3], m[1], m[2], filepath.Base(page)))
	}
}
