package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Carry gives an attempt the output that other procs have left in an earlier one, as links to the same files: keep says
// of which. What is there already is replaced.
func (s Store) Carry(from, to Attempt, keep func(proc int) bool) error {
	all, err := s.Procs(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var procs []int
	for _, proc := range all {
		if keep(proc) {
			procs = append(procs, proc)
		}
	}
	rel, err := from.rel()
	if err != nil || len(procs) == 0 {
		return err
	}
	dir, err := s.Begin(procs)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	into := filepath.Join(incoming, filepath.Base(dir))
	for _, proc := range procs {
		if err := LinkTree(
			root,
			filepath.Join(rel, strconv.Itoa(proc)),
			filepath.Join(into, strconv.Itoa(proc)),
		); err != nil {
			return err
		}
	}
	if err := Sync(dir); err != nil {
		return err
	}
	return s.Keep(dir, to, procs...)
}

// LinkTree links the regular files of a directory into another one; it may be repeated, and without the first there is
// nothing to do.
func LinkTree(root *os.Root, from, to string) error {
	err := fs.WalkDir(Tree{root}, from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		into := filepath.Join(to, below)
		switch {
		case entry.IsDir():
			return root.MkdirAll(into, 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		if err := root.Link(name, into); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was none, or it is no longer kept
	}
	return err
}
