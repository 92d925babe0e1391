package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// Env is where a file is converted: what condor_submit would see there.
type Env struct {
	submitfile.Env

	// Environ lists NAME=value: of getenv.
	Environ []string

	// List returns the files below a directory, by their paths in it; dir is false for a file. Its error is
	// fs.ErrNotExist if there is nothing.
	List func(path string) (files []string, dir bool, err error)

	// Size is that of a file in bytes.
	Size func(path string) (int64, error)

	// Upload returns the name that a file has as an upload, or a directory as an archive; nil: what is too large for
	// ConfigMaps is lost.
	Upload func(path string) (string, error)
}

// Here is this machine's current directory, with these variables. With run, programs that the file names are started.
func Here(environ []string, run bool) Env {
	e := Env{Environ: environ, List: list, Size: size}
	e.Variable = func(name string) (string, bool) {
		for _, setting := range environ {
			if value, is := strings.CutPrefix(setting, name+"="); is {
				return value, true
			}
		}
		return "", false
	}
	e.Now = time.Now()
	e.ReadFile = readFile
	e.Glob = glob
	if run {
		e.Run = func(command string) ([]byte, error) {
			return exec.Command("/bin/sh", "-c", command).Output() // #nosec G204 -- the user has asked for it
		}
	}
	return e
}

// readFile reads no device and no pipe, which may have no end.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return os.ReadFile(path) // #nosec G304 -- the user names it
}

// glob is a shell's: * and ? stand for no dot at the beginning of a name.
func glob(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	if !strings.HasPrefix(filepath.Base(pattern), ".") {
		found = slices.DeleteFunc(found, func(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") })
	}
	if dir, name := filepath.Split(pattern); name != "" && !strings.ContainsAny(dir, `*?[\`) {
		for i, path := range found { // as the pattern has it: ./data/a stays
			found[i] = dir + filepath.Base(path)
		}
	}
	for i, path := range found {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			found[i] += "/"
		}
	}
	return found, err
}

// stat calls what would lie below a file missing, too.
func stat(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fs.ErrNotExist
	}
	return info, err
}

func size(path string) (int64, error) {
	info, err := stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// maxFiles bounds what is looked for in a directory.
const maxFiles = 100_000

func list(path string) (files []string, dir bool, err error) {
	info, err := stat(path)
	if err != nil || !info.IsDir() {
		return nil, false, err
	}
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if len(files) == maxFiles {
			return fmt.Errorf("%s has more than %d files: name an archive of those that the jobs need", path, maxFiles)
		}
		relative, err := filepath.Rel(path, at)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	return files, true, err
}
