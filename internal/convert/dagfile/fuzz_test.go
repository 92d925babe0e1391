package dagfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// What is read is a graph: names are there once, edges join nodes that are there, and nothing waits for itself.
func FuzzRead(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(f, err)
	for _, a := range archives {
		text, err := os.ReadFile(a)
		require.NoError(f, err)
		f.Add(string(text))
	}
	statements, err := txtar.ParseFile("testdata/statements/statements.txtar")
	require.NoError(f, err)
	for _, s := range statements.Files {
		f.Add("-- x.dag --\n" + string(s.Data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Read("", "x.dag", in(txtar.Parse([]byte(text))))
		if err != nil {
			require.Nil(t, d)
			return
		}
		names := map[string]bool{}
		for _, n := range d.Nodes {
			require.False(t, names[n.Name])
			names[n.Name] = true
		}
		seen := map[Edge]bool{}
		for _, e := range d.Edges {
			require.NotSame(t, d.Nodes[e.Parent], d.Nodes[e.Child])
			require.False(t, seen[e])
			seen[e] = true
		}
	})
}
