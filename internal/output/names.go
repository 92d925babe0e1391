package output

import (
	"bufio"
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
// in internal/schedd/submit makes both.
const (
	shelteredNames = ".htcd-names"
	shelteredFile  = ".htcd-name-" // and a number from 0
)

// declared is the directory in which the output of a job with spec.outputs comes, in one directory for each execution,
// numbered from 0: outputs.sh in internal/schedd/submit makes them.
const declared = ".htcd-out"

// checkpoint is the directory with the last checkpoint of a job that has ended on the machine on which it has written
// that: HTCondor sends it along with the output. checkpoint.sh in internal/schedd/submit makes it.
const checkpoint = ".htcd-ckpt"

// Unpack gives the declared output of a proc's last execution its own paths, and drops that of earlier ones and the
// checkpoint. A file that would replace another stays where it came: only somebody who has tried to can have made it.
func Unpack(fetch string, proc int) error {
	root, err := os.OpenRoot(filepath.Join(fetch, strconv.Itoa(proc)))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(checkpoint); err != nil {
		return err
	}
	last, found, err := lastExecution(root)
	if err != nil || !found {
		return err
	}
	from := filepath.Join(declared, strconv.Itoa(last))
	left := false
	for moved := true; moved; { // a file server may leave out names while others are moved away
		moved = false
		err := eachName(root, from, func(name string) error {
			if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				left = true
				return nil
			}
			moved = true
			return root.Rename(filepath.Join(from, name), name)
		})
		if err != nil {
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
	err = eachName(root, declared, func(name string) error {
		if n, err := strconv.Atoi(name); err == nil && n >= last && strconv.Itoa(n) == name &&
			isDir(root, filepath.Join(declared, name)) {
			last, found = n, true
		}
		return nil
	})
	return last, found, err
}

func isDir(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.IsDir()
}

// eachName calls fn for the names in a directory, some at a time: a job can leave any number.
func eachName(root *os.Root, name string, fn func(name string) error) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := fn(name); err != nil {
				return err
			}
		}
	}
}

const namesAtOnce = 256

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
	defer list.Close()
	files := 0
	err = eachName(root, ".", func(name string) error {
		if strings.HasPrefix(name, shelteredFile) {
			files++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("files with other names: %w", err)
	}
	number := -1
	err = eachListed(list, files, func(name string) error {
		number++
		from := shelteredFile + strconv.Itoa(number)
		if _, err := root.Lstat(from); err != nil || !oneName(name) {
			return nil
		}
		if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return nil // also a name that is in the list twice
		}
		return root.Rename(from, name)
	})
	if err != nil {
		return fmt.Errorf("list of names: %w", err)
	}
	return root.Remove(shelteredNames)
}

// maxFileName is the longest name of a file, in bytes.
const maxFileName = 255

// eachListed calls fn for each of the first names in a list, in which each is followed by a NUL. The list was made on
// the node: no more of it is read than so many names can take, and a name that is too long, or cut off at the end, is
// none.
func eachListed(list io.Reader, most int, fn func(name string) error) error {
	const each = maxFileName + 1
	from := bufio.NewReaderSize(io.LimitReader(list, int64(most)*each), each)
	for range most {
		name, err := from.ReadSlice(0)
		if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(string(name[:len(name)-1])); err != nil {
			return err
		}
	}
	return nil
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
	return name != "" && name != "." && name != ".." && len(name) <= maxFileName && !strings.ContainsAny(name, "/\x00")
}
