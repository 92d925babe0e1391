// Package private gives a process a directory of its own for secrets: nobody else may look into it, and it does not
// outlive the process for long.
package private

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is a directory of this process alone. Its lock says that it is in use, also to other processes.
type Dir struct {
	path string
	lock *os.File
}

// Make makes a directory below parent, which is made as well, both of mode 0700. It removes those that processes left
// there which died: nobody holds their lock.
func Make(parent string) (*Dir, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	// Between its making and its locking a directory looks like one that was left.
	making, err := lock(parent, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer making.Close()
	others, _ := filepath.Glob(filepath.Join(parent, "keeper-*"))
	for _, other := range others {
		if f, err := lock(other, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			_ = os.RemoveAll(other)
			_ = f.Close()
		}
	}
	path, err := os.MkdirTemp(parent, "keeper-") // mode 0700
	if err != nil {
		return nil, err
	}
	held, err := lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil, err
	}
	return &Dir{path, held}, nil
}

func lock(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir) // #nosec G304 -- the administrator's --ticket-dir
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Path joins a name to the directory's.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Remove removes the directory with all that is in it. No directory, nil, is removed already.
func (d *Dir) Remove() error {
	if d == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}
