package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Place moves what a fetch brought of one proc to a directory of the attempt, of a name such as step/job_0/3, in one
// step, replacing any that is there. It reports whether the fetch brought anything. Sync the fetch before.
func (s Store) Place(fetch string, proc string, a Attempt, name string) (bool, error) {
	attempt, err := s.AttemptDir(a)
	if err != nil {
		return false, err
	}
	if !filepath.IsLocal(name) {
		return false, fs.ErrInvalid
	}
	from, to := filepath.Join(fetch, proc), filepath.Join(attempt, name)
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return false, err
	}
	if err := s.putAside(to); err != nil {
		return false, err
	}
	return true, os.Rename(from, to)
}
