package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replaced ends the name that Restore gives to what was there.
const Replaced = ".replaced"

// Restore puts a copy that Backup has made in the place of the ledger in the file at path, which nobody may have open.
// The copy is checked first, and stays. What was at path is kept beside it, with its journal, which must not be applied
// to the copy.
func Restore(ctx context.Context, from, path string, locked Locked) error {
	if err := restore(ctx, from, path, locked); err != nil {
		return fmt.Errorf("restore ledger %s: %w", path, classify(err))
	}
	return nil
}

func restore(ctx context.Context, from, path string, locked Locked) error {
	is, err := os.Stat(from)
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(is, there) {
		return errors.New("that is the ledger itself")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replace(path, func(part string) error {
		err := copyPages(ctx, from, part, locked)
		if err == nil {
			err = errors.Join(examine(ctx, part), holdsProcs(ctx, part, ""))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		return nil
	}, func() error { return setAside(ctx, path) })
}

// setAside leaves the ledger at path, too, so that there is one at any time. What a writer that died has left in the
// journal is rolled back before, if it can be: whoever is interrupted between the steps leaves a ledger without it.
func setAside(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ignoreMissing(os.Remove(path + journalSuffix))
	}
	_ = holdsProcs(ctx, path, "&mode=rw") // a damaged one is set aside as it is
	if err := ignoreMissing(os.Remove(path + Replaced + journalSuffix)); err != nil {
		return err
	}
	if err := ignoreMissing(os.Remove(path + Replaced)); err != nil {
		return err
	}
	if err := os.Link(path, path+Replaced); err != nil {
		return err
	}
	return ignoreMissing(os.Rename(path+journalSuffix, path+Replaced+journalSuffix))
}

const journalSuffix = "-journal"

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// holdsProcs refuses a file that is no ledger, an empty one included.
func holdsProcs(ctx context.Context, path, more string) error {
	db, err := openDB(path, readerPragmas+more)
	if err != nil {
		return err
	}
	var n int
	if err = db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM htcjobs LIMIT 1)`).Scan(&n); err != nil {
		err = fmt.Errorf("this is no ledger: %w", err)
	}
	return errors.Join(err, db.Close())
}
