package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Quarantine renames a damaged file and its journal, and returns the new name: path.damaged-20261120T154500Z. The
// journal keeps the name under which SQLite finds it, so that the sqlite3 shell's .recover can use both. Nobody may
// have the file open.
func Quarantine(path string, now time.Time) (string, error) {
	aside := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	if _, err := os.Lstat(aside); err == nil {
		return "", fmt.Errorf("put the damaged ledger aside: %s already exists", aside)
	}
	// The journal first: SQLite deletes one that it finds beside a new file.
	if err := os.Rename(path+"-journal", aside+"-journal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("put the journal of the damaged ledger aside: %w", err)
	}
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("put the damaged ledger aside: %w", err)
	}
	return aside, syncDirectoryOf(path)
}

// syncDirectoryOf makes the present name of a file durable.
func syncDirectoryOf(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("name of %s: %w", path, err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
