package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	// ErrNotFound: there is no such run or proc.
	ErrNotFound = errors.New("not in the ledger")
	// ErrExists: the run, or its procs, are in the ledger already.
	ErrExists = errors.New("already in the ledger")
	// ErrCorrupt: the file is no SQLite database, or is damaged. Trying again cannot help; the file must be put aside.
	ErrCorrupt = errors.New("the ledger file is damaged")
	// ErrLost: the file is gone although its directory exists, or another one or an older copy is in its place. Trying
	// again cannot help; Open goes on with what is there, or makes a new one.
	ErrLost = errors.New("the ledger file is lost")
	// ErrFull: the volume has no room for the write. It is one of the errors of IsUnavailable.
	ErrFull = errors.New("the ledger's volume is full")
	// errNoDirectory: the file's directory cannot be reached or made.
	errNoDirectory = errors.New("the ledger's directory is not available")
	// errAway: that directory was there, and is not any more.
	errAway = errors.New("the ledger's directory is gone, or another is in its place: put it back, " +
		"or restart htcd, which goes on with what is there")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the ledger is closed")
)

// IsUnavailable reports whether the file could not be read or written for a reason that may pass: the volume is full,
// read-only, absent, or gives I/O errors, or somebody else holds the lock. Nothing was written; trying again later can
// help.
func IsUnavailable(err error) bool {
	if errors.Is(err, errNoDirectory) {
		return true
	}
	if errors.Is(err, ErrLost) {
		return false
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_NOMEM:
		return true
	}
	return false
}

// code is the primary SQLite result code of err, 0 when it has none.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// classify adds ErrCorrupt to the errors that mean it.
func classify(err error) error {
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// explain is classify for errors of a file that existed when the ledger was opened. Without its directory, or with
// another in its place, the volume is away.
func (l *Ledger) explain(err error) error {
	if err = classify(err); !IsUnavailable(err) {
		return err
	}
	if code(err) == sqlite3.SQLITE_FULL {
		return fmt.Errorf("%w, %s: %w", ErrFull, free(filepath.Dir(l.path)), err)
	}
	if dir, statErr := os.Stat(filepath.Dir(l.path)); statErr != nil || !os.SameFile(dir, l.dir) {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	if _, statErr := os.Stat(l.path); errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// free describes the free space on the volume of a directory.
func free(dir string) string {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "and its free space is unknown: " + err.Error()
	}
	return fmt.Sprintf(
		"%d KiB are free in %s",
		int64(stat.Bavail)*stat.Bsize>>10,
		dir,
	) // #nosec G115 -- no volume has 8 EiB
}
