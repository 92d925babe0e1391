package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Backup copies the ledger in the file at path, which others may be writing meanwhile, to the file at to, and checks
// the copy. What was at to stays until the copy is complete, checked and on disk; then the copy takes its place.
// Commits wait while pages are copied, all in one pass: a pass in parts would begin again after each commit.
func Backup(ctx context.Context, path, to string, locked Locked) error {
	if err := backup(ctx, path, to, locked); err != nil {
		return fmt.Errorf("back up ledger %s: %w", path, classify(err))
	}
	return nil
}

// Locked is called about every second while somebody else keeps a file that is to be read locked, with how long that
// has been so. An error ends the wait.
type Locked func(waited time.Duration) error

func backup(ctx context.Context, path, to string, locked Locked) error {
	from, err := os.Stat(path)
	if err != nil {
		return err
	}
	if there, err := os.Stat(to); err == nil && (os.SameFile(from, there) || !there.Mode().IsRegular()) {
		return fmt.Errorf("%s is not a file that a backup could replace", to)
	}
	return replace(to, func(part string) error {
		if err := copyPages(ctx, path, part, locked); err != nil {
			return err
		}
		if err := examine(ctx, part); err != nil {
			return fmt.Errorf("the copy: %w", err)
		}
		return nil
	}, nil)
}

// replace has a file beside to filled, and puts it on disk and then in the place of to. Before that last step it calls
// before, unless that is nil.
func replace(to string, fill func(part string) error, before func() error) (err error) {
	part, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*"+PartSuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	defer part.Close()
	if err := fill(part.Name()); err != nil {
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	if err := os.Rename(part.Name(), to); err != nil {
		return err
	}
	return syncDirectoryOf(to)
}

// PartSuffix ends the name of a copy that is not complete.
const PartSuffix = ".part"

// patience is how long SQLite waits for a lock by itself until Locked is called, in milliseconds.
const patience = 1000

func copyPages(ctx context.Context, path, to string, locked Locked) error {
	db, err := openDB(path, readerPragmas+"&mode=rw") // to roll back what a dead writer has left, where it is needed
	if err != nil {
		return err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if _, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout(%d)", patience)); err != nil {
		return errors.Join(err, c.Close(), db.Close())
	}
	err = c.Raw(func(driver any) error {
		source, is := driver.(interface {
			NewBackup(uri string) (*sqlite.Backup, error)
		})
		if !is {
			return fmt.Errorf("the driver %T makes no backups", driver)
		}
		b, err := source.NewBackup("file:" + (&url.URL{Path: to}).EscapedPath())
		if err != nil {
			return err
		}
		return errors.Join(step(ctx, b, locked), b.Finish())
	})
	return errors.Join(err, c.Close(), db.Close())
}

// step copies everything, as soon as no commit is under way.
func step(ctx context.Context, b *sqlite.Backup, locked Locked) error {
	began := time.Now()
	for {
		_, err := b.Step(-1)
		switch code(err) {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		default:
			return err
		}
		if why := locked(time.Since(began)); why != nil {
			return fmt.Errorf("%w: %w", why, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// examine reads all of a copy.
func examine(ctx context.Context, path string) error {
	db, err := openDB(path, allPragmas+"&mode=rw")
	if err != nil {
		return err
	}
	var found string
	err = db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found)
	if err == nil && found != "ok" {
		err = fmt.Errorf("%w: %s", ErrCorrupt, found)
	}
	return errors.Join(err, db.Close())
}
