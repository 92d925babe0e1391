package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Files whose names HTCondor could not transfer travel under other names, with a list of the original ones: wrapper.sh
// in internal/schedd makes both.
const (
	shelteredNames = ".htcd-names"
	shelteredFile  = ".htcd-name-" // and a number from 0
)

// maxNames bounds how much of such a list is read.
const maxNames = 16 << 20

// RestoreNames restores the names of one proc's files in a fetch. An entry that is no name of a file in that directory
// keeps the name under which it came.
func RestoreNames(fetch string, proc int) error {
	root, err := os.OpenRoot(filepath.Join(fetch, strconv.Itoa(proc)))
	if err != nil {
		return err
	}
	defer root.Close()
	list, err := Regular(root, shelteredNames)
	if err != nil {
		return nil // there is none, or the script created something of that name
	}
	names, err := io.ReadAll(io.LimitReader(list, maxNames))
	if err = errors.Join(err, list.Close()); err != nil {
		return fmt.Errorf("list of names: %w", err)
	}
	for i, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from := shelteredFile + strconv.Itoa(i)
		if _, err := root.Lstat(from); err != nil || !oneName(name) {
			continue
		}
		if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := root.Rename(from, name); err != nil {
			return err
		}
	}
	return root.Remove(shelteredNames)
}

// Discard removes files from one proc's directory in a fetch; none of a name is no error.
func Discard(fetch string, proc int, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	root, err := os.OpenRoot(filepath.Join(fetch, strconv.Itoa(proc)))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// oneName reports whether a file may have that name, in the directory where it is.
func oneName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}
