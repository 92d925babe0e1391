package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/ledger"
)

const (
	backupName = "htcjobs-20060102T150405Z.db"
	backups    = "htcjobs-*T*Z.db"
)

// lockPatience is how long a file that somebody has locked is waited for.
const lockPatience = 5 * time.Minute

// waits says once that it is waited for a file, and gives up after lockPatience.
func waits(to io.Writer, path string) ledger.Locked {
	told := false
	return func(waited time.Duration) error {
		if waited > lockPatience {
			return fmt.Errorf("somebody has kept it locked for %s: end the program that does, such as a sqlite3 shell "+
				"in a transaction", lockPatience)
		}
		if !told {
			told = true
			fmt.Fprintf(to, "somebody has locked %s: waiting, for %s at most\n", path, lockPatience)
		}
		return nil
	}
}

// Backup copies the ledger from one file to another, or into a directory, of whose copies it keeps the latest; 0: all.
// What it waits for is written to told.
func Backup(ctx context.Context, out, told io.Writer, from, to string, keep int) error {
	dir := ""
	if at, err := os.Stat(to); err == nil && at.IsDir() {
		dir, to = to, filepath.Join(to, time.Now().UTC().Format(backupName))
	} else if keep > 0 {
		return setting.Usage{Err: fmt.Errorf("--keep: %s is not a directory", to)}
	}
	if err := ledger.Backup(ctx, from, to, waits(told, from)); err != nil {
		return err
	}
	is, err := os.Stat(to)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s (%d bytes)\n", to, is.Size())
	if keep == 0 {
		return nil
	}
	return prune(dir, filepath.Base(to), keep)
}

// prune removes all but the latest copies of a directory, and parts of copies that were begun a day ago or earlier. The
// one just made is the latest: what is named after it was made while the clock was ahead, and goes first.
func prune(dir, made string, keep int) error {
	entries, err := os.ReadDir(dir) // sorted by name, and so by time
	if err != nil {
		return err
	}
	var ahead, copies, gone []string
	for _, e := range entries {
		if ok, _ := filepath.Match(backups, e.Name()); ok && e.Name() > made {
			ahead = append(ahead, e.Name())
		} else if ok {
			copies = append(copies, e.Name())
		}
		if ok, _ := filepath.Match(backups+".*"+ledger.PartSuffix, e.Name()); !ok {
			continue
		}
		if is, err := e.Info(); err == nil && time.Since(is.ModTime()) > 24*time.Hour {
			gone = append(gone, e.Name())
		}
	}
	copies = append(ahead, copies...)
	var errs []error
	for _, name := range append(gone, copies[:max(0, len(copies)-keep)]...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Restore puts a copy, or the latest one in a directory, in the place of the ledger.
func Restore(ctx context.Context, out, told io.Writer, from, to string) error {
	from, err := latest(from)
	if err != nil {
		return err
	}
	if err := ledger.Restore(ctx, from, to, waits(told, from)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is now %s\n", from, to)
	return nil
}

// latest returns a file, or of a directory the latest copy in it. It refuses to choose if one was made in the future:
// the clock was ahead then, or is behind now, and the names do not tell which is the latest.
func latest(path string) (string, error) {
	is, err := os.Stat(path)
	if err != nil || !is.IsDir() {
		return path, err
	}
	entries, err := os.ReadDir(path) // sorted by name, and so by time
	if err != nil {
		return "", err
	}
	found := ""
	for _, e := range entries {
		if ok, _ := filepath.Match(backups, e.Name()); ok {
			found = e.Name()
		}
	}
	switch at, err := time.Parse(backupName, found); {
	case found == "":
		return "", fmt.Errorf("%s has no copies called %s", path, backups)
	case err == nil && time.Until(at) > 5*time.Minute:
		return "", fmt.Errorf("by the clock %s has not been made yet, so it may not be the latest copy: name one of %s",
			found, path)
	}
	return filepath.Join(path, found), nil
}
