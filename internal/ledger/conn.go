package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// The PRAGMAs of every connection; the package comment says why these.
const (
	allPragmas = "_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=temp_store(2)"

	// A page cache that spills takes the exclusive lock long before the commit.
	writerPragmas = allPragmas + "&_pragma=journal_mode(PERSIST)&_pragma=journal_size_limit(16777216)" +
		"&_pragma=synchronous(FULL)&_pragma=cache_spill(0)"
	readerPragmas = allPragmas + "&_pragma=query_only(1)"
)

// openDB opens nothing yet: connections are made on demand.
func openDB(path, pragmas string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+pragmas)
}

// conn is one connection with the statements prepared on it. One goroutine
// uses it at a time.
type conn struct {
	sql        *sql.Conn
	statements map[string]*sql.Stmt // by their text; this package has a fixed number of them
}

func connect(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{sql: c, statements: map[string]*sql.Stmt{}}, nil
}

func (c *conn) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s, ok := c.statements[text]; ok {
		return s, nil
	}
	s, err := c.sql.PrepareContext(ctx, text)
	if err == nil {
		c.statements[text] = s
	}
	return s, err
}

func (c *conn) exec(ctx context.Context, text string, args ...any) (changed int64, err error) {
	s, err := c.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// discard closes the connection instead of returning it to the pool of database/sql: the next one opens the file again,
// which matters when this one saw the volume read-only or absent.
func (c *conn) discard() {
	_ = c.sql.Raw(func(any) error { return driver.ErrBadConn })
}
