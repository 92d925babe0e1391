package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Ledger is the open file. Its methods may be called from any goroutine.
type Ledger struct {
	path string
	dir  os.FileInfo // the directory of path as it was at Open
	file *identity   // of path as it was then; nil: it is a Reader's

	writeDB, readDB *sql.DB
	writer          *conn      // of the writing goroutine; nil after trouble, until the next batch
	readers         chan *conn // nil stands for a connection still to be made
	space           space      // of the writing goroutine
	unshrinkable    error

	// commit is held for reading by every Read and for writing around COMMIT. SQLite's own file locks do the same, but
	// wait by sleeping and trying again; this spares our goroutines that.
	commit sync.RWMutex

	writes  chan *write
	open    sync.RWMutex // guards closed, and sends on writes against its closing
	closed  bool
	drained chan struct{} // closed when the writing goroutine has answered all
}

// maxReaders bounds the connections for reading; each has a page cache of 2 MB.
const maxReaders = 4

// Open opens the ledger in the file at path, creating it and its directory if absent, and brings its tables up to date.
// The error is ErrCorrupt for a damaged file; if IsUnavailable, trying again can help.
func Open(ctx context.Context, path string) (*Ledger, error) {
	l, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, classify(err))
	}
	return l, nil
}

func open(ctx context.Context, path string) (_ *Ledger, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDirectory, err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDirectory, err)
	}
	l := &Ledger{
		path: path, dir: dir,
		readers: make(chan *conn, maxReaders),
		writes:  make(chan *write, maxBatch),
		drained: make(chan struct{}),
	}
	for range maxReaders {
		l.readers <- nil
	}
	l.unshrinkable = prepareSpace(ctx, path)
	if err := prepareFile(ctx, path); err != nil {
		return nil, err
	}
	if l.writeDB, err = openDB(path, writerPragmas+"&mode=rw"); err != nil {
		return nil, err
	}
	if l.readDB, err = openDB(path, readerPragmas+"&mode=rw"); err != nil {
		return nil, err
	}
	if l.writer, err = connect(ctx, l.writeDB); err != nil {
		return nil, errors.Join(err, l.writeDB.Close())
	}
	if l.file, err = identify(path); err != nil {
		l.writer.discard()
		return nil, errors.Join(err, l.writeDB.Close())
	}
	go l.writeLoop()
	return l, nil
}

// prepareFile gets the file ready for use. Only this connection may create it: a later one would begin an empty ledger
// while htcd remembers a full one.
func prepareFile(ctx context.Context, path string) error {
	db, err := openDB(path, writerPragmas+"&mode=rwc")
	if err != nil {
		return err
	}
	c, err := connect(ctx, db)
	if err == nil {
		err = migrate(ctx, c)
		c.discard()
	}
	return errors.Join(err, db.Close())
}

// Close takes no more writes, waits until those taken are durable and answered and the reads in progress have ended,
// and closes the file. The error is ErrLost if another file is in its place.
func (l *Ledger) Close() error {
	l.open.Lock()
	again := l.closed
	if !again {
		l.closed = true
		close(l.writes)
	}
	l.open.Unlock()
	if again {
		return nil
	}
	<-l.drained
	if l.writer != nil {
		l.writer.discard()
	}
	l.closeReaders()
	differs := l.file.differs(l.path)
	return errors.Join(differs, l.readDB.Close(), l.writeDB.Close(), l.file.file.Close())
}

// closeReaders waits for the reads in progress.
func (l *Ledger) closeReaders() {
	for range maxReaders {
		if c := <-l.readers; c != nil {
			c.discard()
		}
	}
	close(l.readers)
}

// Read runs fn on one consistent state of the ledger; it cannot write. It waits for no more than a commit in progress,
// and delays the next commit until fn returns: keep fn short, and let it call neither Read nor Write.
func (l *Ledger) Read(ctx context.Context, fn func(*Tx) error) (err error) {
	c, err := l.reader(ctx)
	if err != nil {
		return fmt.Errorf("read ledger: %w", l.explain(err))
	}
	l.commit.RLock()
	defer l.commit.RUnlock()
	defer func() { l.giveBack(c, err) }()
	if _, err := c.exec(ctx, `BEGIN`); err != nil {
		return fmt.Errorf("read ledger: %w", l.explain(err))
	}
	return l.explain(fn(&Tx{ctx: ctx, conn: c}))
}

// reader waits for an unused connection.
func (l *Ledger) reader(ctx context.Context) (*conn, error) {
	select {
	case c, ok := <-l.readers:
		if !ok {
			return nil, ErrClosed
		}
		if c != nil {
			return c, nil
		}
		c, err := connect(ctx, l.readDB)
		if err != nil {
			l.readers <- nil
		}
		return c, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// giveBack ends the transaction of c. A connection where that fails, or that found the file unavailable, is not used
// again: the file that it has open may be of a volume that is not there any more.
func (l *Ledger) giveBack(c *conn, found error) {
	if _, err := c.exec(context.Background(), `ROLLBACK`); err != nil || IsUnavailable(found) {
		c.discard()
		c = nil
	}
	l.readers <- c
}
