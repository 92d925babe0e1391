// Package private creates a directory for a process's secrets. No other user can read it, and it is removed soon
// after the process has ended.
package private

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is a directory that only this process uses; a lock shows that to other processes.
type Dir struct {
	path string
	lock *os.File
}

// Make creates a directory below parent, which is created if necessary, both with mode 0700. It removes directories
// whose lock nobody holds: their processes have died.
func Make(parent string) (*Dir, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	// Between creation and locking, a directory looks abandoned.
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

// Path returns the path of a name in the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Remove removes the directory and its contents. For nil it does nothing.
func (d *Dir) Remove() error {
	if d == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}
