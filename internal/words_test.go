package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notForUsers are words that only this code uses in such a sense, and phrases that are read twice.
var notForUsers = regexp.MustCompile(`(?i)\b(turnstiles?|sightings?|deeds?|parties|turned|` +
	`(is|are|be|has|have|was|were) told|told to|(is|are) none (that|of)|, that of|comes? to pass|at last)\b`)

func TestStringsThatUsersSeeAreInTheFieldsWords(t *testing.T) {
	n := 0
	var found []string
	for _, root := range []string{"../internal", "../cmd"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				literal, is := node.(*ast.BasicLit)
				if !is || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				n++
				if word := notForUsers.FindString(text); word != "" {
					found = append(found, files.Position(literal.Pos()).String()+": "+word)
				}
				return true
			})
			return nil
		}))
	}
	require.Positive(t, n)
	require.Empty(t, found, "say it in other words")
}
