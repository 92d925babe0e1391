package output

import (
	"cmp"
	"io/fs"
	"os"
	"slices"
)

// Tree is what is below a root, whatever its names are: Root.FS refuses those that are no UTF-8, which jobs leave, too.
type Tree struct{ *os.Root }

// Open is that of fs.FS.
func (t Tree) Open(name string) (fs.File, error) { return t.Root.Open(name) }

// ReadDir is that of fs.ReadDirFS.
func (t Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := t.Root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}
