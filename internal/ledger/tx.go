package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// Tx is for the function given to Write or Read, and ends with it.
type Tx struct {
	ctx  context.Context
	conn *conn
}

// Touch rewrites the file's header unchanged: its success shows that the file can be written.
func (tx *Tx) Touch() error {
	var version int
	if err := tx.queryRow(`PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	_, err := tx.exec(fmt.Sprintf(`PRAGMA user_version = %d`, version))
	return err
}

// scanner is one row.
type scanner interface{ Scan(dest ...any) error }

func (tx *Tx) exec(text string, args ...any) (changed int64, err error) {
	return tx.conn.exec(tx.ctx, text, args...)
}

// change is exec of what must change a row; ErrNotFound if none was.
func (tx *Tx) change(text string, args ...any) error {
	changed, err := tx.exec(text, args...)
	if err == nil && changed == 0 {
		return ErrNotFound
	}
	return err
}

// queryRow's row returns sql.ErrNoRows when there is none.
func (tx *Tx) queryRow(text string, args ...any) scanner {
	s, err := tx.conn.prepare(tx.ctx, text)
	if err != nil {
		return failedRow{err}
	}
	return s.QueryRowContext(tx.ctx, args...)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

func (tx *Tx) query(each func(scanner) error, text string, args ...any) error {
	s, err := tx.conn.prepare(tx.ctx, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(tx.ctx, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, each)
}

func eachRow(rows *sql.Rows, each func(scanner) error) error {
	defer func() { _ = rows.Close() }() // Err below reports what matters
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
