package output

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// incoming is the directory for fetches, and for dropped output until its removal. No namespace has such a name.
const incoming = ".incoming"

// Begin makes a new directory for one fetch, with an empty one in it for each proc, named by its number. Nobody else
// uses it, so the leftovers of an interrupted fetch mix with nothing.
func (s Store) Begin(procs []int) (string, error) {
	parent := filepath.Join(s.Root, incoming)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "fetch-")
	if err != nil {
		return "", err
	}
	for _, proc := range procs {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(proc)), 0o700); err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	return dir, nil
}

// Arrived reports whether a fetch brought any files of a proc. A job that ran to its end has at least its streams.
func Arrived(fetch string, proc int) (bool, error) {
	dir, err := os.Open(filepath.Join(fetch, strconv.Itoa(proc))) // #nosec G304 -- a directory of ours
	if err != nil {
		return false, err
	}
	names, err := dir.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) > 0, errors.Join(err, dir.Close())
}

// Size is how many bytes a fetch has brought. Unreadable files do not count.
func Size(fetch string) int64 {
	size, _ := measure(fetch)
	return size
}

// Taken is how much of a volume is in a directory, in blocks, the directories among its files. Unreadable files have no
// bytes.
func Taken(dir string) Room {
	_, taken := measure(dir)
	return taken
}

// measure adds up the files in a directory. One with several names counts once.
func measure(dir string) (size int64, taken Room) {
	seen := map[fileID]bool{}
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := entry.Info()
		if err == nil && entry.Type().IsRegular() {
			if linked(seen, info) {
				return nil
			}
			size += info.Size()
			taken.Bytes += onDisk(info.Size())
		}
		taken.Files++
		return nil
	})
	return size, taken
}

// Keep moves the fetched output of some procs into place, each in one step, replacing any there, and returns when that
// survives a loss of power. Sync the fetch before.
func (s Store) Keep(fetch string, a Attempt, procs ...int) error {
	attempt, err := s.AttemptDir(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(attempt, 0o700); err != nil {
		return err
	}
	for _, proc := range procs {
		to, err := s.ProcDir(a, proc)
		if err != nil {
			return err
		}
		from := filepath.Join(fetch, strconv.Itoa(proc))
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(to); err == nil {
				continue // an earlier try has done it
			}
		}
		if err := s.putAside(to); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	return SyncDir(attempt)
}

// SyncDir makes the present names of a directory's files durable.
func SyncDir(name string) error {
	dir, err := os.Open(name) // #nosec G304 -- below a root of ours, of checked names
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Has reports whether a proc's output is in place.
func (s Store) Has(a Attempt, proc int) (bool, error) {
	dir, err := s.ProcDir(a, proc)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Drop takes away all output of an HTCJob at once; Sweep removes it from the disk. None is no error.
func (s Store) Drop(namespace, name string) error {
	rel, err := relJob(namespace, name)
	if err != nil {
		return err
	}
	return s.putAside(filepath.Join(s.Root, rel))
}

// DropAttempt is Drop for one attempt.
func (s Store) DropAttempt(a Attempt) error {
	dir, err := s.AttemptDir(a)
	if err != nil {
		return err
	}
	return s.putAside(dir)
}

// DropProc is Drop for one proc of an attempt.
func (s Store) DropProc(a Attempt, proc int) error {
	dir, err := s.ProcDir(a, proc)
	if err != nil {
		return err
	}
	return s.putAside(dir)
}

// DropBefore drops the output of the attempts before one, and removes it from the disk.
func (s Store) DropBefore(a Attempt) error {
	attempts, err := s.Attempts(a.Namespace, a.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(attempts) == 0 || attempts[0].Number >= a.Number:
		return nil
	}
	for _, earlier := range attempts {
		if earlier.Number < a.Number {
			err = errors.Join(err, s.DropAttempt(earlier))
		}
	}
	return errors.Join(err, s.Sweep(false))
}

// putAside moves a directory, if it exists, into incoming. It makes none for it: a full volume has no room for that,
// and would keep what is dropped to empty it.
func (s Store) putAside(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	parent := filepath.Join(s.Root, incoming)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	return os.Rename(dir, filepath.Join(parent, dropped+rand.Text()))
}

const dropped = "dropped-"

// Sweep removes dropped output from the disk. With all, also leftovers of fetches, of which none may be under way.
func (s Store) Sweep(all bool) error {
	parent := filepath.Join(s.Root, incoming)
	pattern := dropped + "*"
	if all {
		pattern = "*"
	}
	left, err := filepath.Glob(filepath.Join(parent, pattern))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// Sync returns when everything on the volume of dir is on disk.
func Sync(dir string) error {
	d, err := os.Open(dir) // #nosec G304 -- a directory of ours
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
