package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Reader is a ledger opened read-only, which others may be writing meanwhile.
type Reader struct{ ledger *Ledger }

// ErrReadOnly is the error of a Reader's Write.
var ErrReadOnly = errors.New("the ledger was opened read-only")

// OpenReader opens the ledger in the file at path, which must exist and have the tables of this htcd: nothing is
// created or migrated.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	r, err := openReader(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, classify(err))
	}
	return r, nil
}

func openReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	db, err := openDB(path, readerPragmas)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	l := &Ledger{readDB: db, readers: make(chan *conn, maxReaders)}
	for range maxReaders {
		l.readers <- nil
	}
	return &Reader{l}, nil
}

// checkVersion refuses a file whose tables are older than this htcd's; newer ones only have more.
func checkVersion(ctx context.Context, db *sql.DB) error {
	steps, err := migrations.ReadDir("migration")
	if err != nil {
		return err
	}
	var have int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have); err != nil {
		return err
	}
	if have < len(steps) {
		return fmt.Errorf(
			"its tables are those of an older htcd (version %d instead of %d), which htcd run brings up to date",
			have,
			len(steps),
		)
	}
	return nil
}

// Read is that of Ledger.
func (r *Reader) Read(ctx context.Context, fn func(*Tx) error) error { return r.ledger.Read(ctx, fn) }

// Write always is an error.
func (r *Reader) Write(context.Context, func(*Tx) error) error { return ErrReadOnly }

// Close waits for the reads in progress and closes the file.
func (r *Reader) Close() error {
	r.ledger.closeReaders()
	return r.ledger.readDB.Close()
}
