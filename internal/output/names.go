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

// declared is the directory in which the output of a job with spec.outputs comes, in one directory for each execution, numbered
// from 0: outputs.sh in internal/schedd makes them.
const declared = ".htcd-out"

// Unpack gives the declared output of a proc's last execution its own paths, and drops that of earlier ones. A file that would
// replace another stays where it came: only somebody who has tried to can have made it.
func Unpack(fetch string, proc int) error {
	root, err := os.OpenRoot(filepath.Join(fetch, strconv.Itoa(proc)))
	if err != nil {
		return err
	}
	defer root.Close()
	last, found, err := lastExecution(root)
	if err != nil || !found {
		return err
	}
	from := filepath.Join(declared, strconv.Itoa(last))
	names, err := namesIn(root, from)
	if err != nil {
		return err
	}
	left := false
	for _, name := range names {
		if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			left = true
			continue
		}
		if err := root.Rename(filepath.Join(from, name), name); err != nil {
			return err
		}
	}
	if left {
		return nil
	}
	return root.RemoveAll(declared)
}

// lastExecution finds the directory with the highest number; there is none if no output was declared.
func lastExecution(root *os.Root) (last int, found bool, err error) {
	if !isDir(root, declared) {
		return 0, false, nil
	}
	names, err := namesIn(root, declared)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= last && strconv.Itoa(n) == name && isDir(root, filepath.Join(declared, name)) {
			last, found = n, true
		}
	}
	return last, found, err
}

func isDir(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.IsDir()
}

func namesIn(root *os.Root, name string) ([]string, error) {
	dir, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	return names, errors.Join(err, dir.Close())
}

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
