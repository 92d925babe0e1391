package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Readable is what can be read: a Store, or a Reader.
type Readable interface {
	Read(ctx context.Context, fn func(*Tx) error) error
}

// Store is what can be read and written: a Ledger, or what watches, fences or counts one.
type Store interface {
	Readable
	Write(ctx context.Context, fn func(*Tx) error) error
}

// Get returns what fn reads in a transaction.
func Get[T any](ctx context.Context, from Readable, fn func(*Tx) (T, error)) (found T, err error) {
	err = from.Read(ctx, func(tx *Tx) (err error) {
		found, err = fn(tx)
		return err
	})
	return found, err
}

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

// queryRow's row returns ErrNotFound when there is none.
func (tx *Tx) queryRow(text string, args ...any) scanner {
	s, err := tx.conn.prepare(tx.ctx, text)
	if err != nil {
		return row{err: err}
	}
	return row{s.QueryRowContext(tx.ctx, args...), nil}
}

type row struct {
	found *sql.Row
	err   error // why nothing was asked
}

func (r row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	err := r.found.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

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

// list returns what scan reads of each row.
func list[T any](tx *Tx, scan func(scanner) (T, error), text string, args ...any) (all []T, err error) {
	err = tx.query(func(row scanner) error {
		one, err := scan(row)
		all = append(all, one)
		return err
	}, text, args...)
	return all, err
}

// one scans a row of one column.
func one[T any](row scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// into scans the columns of a row into what a function names of a T.
func into[T any](columns func(*T) []any) func(scanner) (T, error) {
	return func(row scanner) (v T, err error) {
		err = row.Scan(columns(&v)...)
		return v, err
	}
}

// keyed returns the second column of each row by the first.
func keyed[K comparable, V any](tx *Tx, text string, args ...any) (map[K]V, error) {
	all := map[K]V{}
	err := tx.query(func(row scanner) error {
		var key K
		var v V
		err := row.Scan(&key, &v)
		all[key] = v
		return err
	}, text, args...)
	return all, err
}

// wrap says in an error, if there is one, what it is about.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(format+": %w", append(args, *err)...)
	}
}
