package ledger

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// The file gives space back while htcd works (SQLite's auto_vacuum=INCREMENTAL): between two batches the writing
// goroutine moves some pages from the end of the file to free ones and cuts it off there.
const (
	sparePages   = 1024                   // 4 MiB: as many free pages always stay, since they are used again
	spareShare   = 4                      // and as many as a quarter of the file
	pagesAtOnce  = 256                    // 1 MiB, so that no write waits for more than some milliseconds
	betweenSteps = 100 * time.Millisecond // so nine tenths of the time are for writes
	afterTrouble = 10 * time.Second       // a full volume, or somebody else's lock
)

// space is what the writing goroutine knows of the free pages.
type space struct {
	next   time.Time // not before then anything is given back
	excess int       // how many pages are to be given back
}

// due is signalled when there is something to give back; nil: not before the next write.
func (s *space) due() <-chan time.Time {
	if s.excess <= 0 {
		return nil
	}
	return time.After(time.Until(s.next))
}

// look counts the free pages within a transaction that is about to be committed, if the file can give any back. What
// cannot be counted is not given back.
func (l *Ledger) look(ctx context.Context) {
	if l.unshrinkable != nil || time.Now().Before(l.space.next) {
		return
	}
	free, all, err := l.writer.pages(ctx)
	if err != nil {
		free = 0
	}
	l.space.excess = free - max(sparePages, all/spareShare)
}

// shrink gives some pages back, if there are many free ones. A failure changes nothing; whatever causes it, the next
// write reports.
func (l *Ledger) shrink() {
	if l.writer == nil || l.space.excess <= 0 || time.Now().Before(l.space.next) {
		return
	}
	n := min(l.space.excess, pagesAtOnce)
	err := l.cutOff(context.Background(), n)
	l.space.next = time.Now().Add(betweenSteps)
	l.space.excess -= n
	if err == nil {
		return
	}
	l.space = space{next: time.Now().Add(afterTrouble)}
	if IsUnavailable(err) {
		l.writer.discard()
		l.writer = nil
	}
}

// cutOff gives n pages back.
func (l *Ledger) cutOff(ctx context.Context, n int) error {
	if _, err := l.writer.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	rows, err := l.writer.sql.QueryContext(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, n)) // a row for each page
	if err == nil {
		err = eachRow(rows, func(scanner) error { return nil })
	}
	if err == nil {
		err = l.commitBatch(ctx)
	}
	if err != nil {
		_, _ = l.writer.sql.ExecContext(ctx, `ROLLBACK`) // fails if SQLite has rolled back by itself
	}
	return err
}

// pages returns how many pages of the file are free, and how many there are.
func (c *conn) pages(ctx context.Context) (free, all int, err error) {
	for text, into := range map[string]*int{`PRAGMA freelist_count`: &free, `PRAGMA page_count`: &all} {
		if err := c.sql.QueryRowContext(ctx, text).Scan(into); err != nil {
			return 0, 0, err
		}
	}
	return free, all, nil
}

// incremental is SQLite's number for auto_vacuum=INCREMENTAL.
const incremental = 2

// prepareSpace lets the file give space back: a new one from its beginning, and one of an older htcd by rewriting it
// once, for which its volume needs twice its size (a copy, and the journal). 100 MB take 1 to 3 s.
func prepareSpace(ctx context.Context, path string) (err error) {
	db, err := openDB(path, "_pragma=busy_timeout(10000)&mode=rwc")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // a PRAGMA is for a connection
	var mode int
	if err := db.QueryRowContext(ctx, `PRAGMA auto_vacuum`).Scan(&mode); err != nil || mode == incremental {
		return err
	}
	steps := []string{
		// The usual directory of temporary files is small, or memory.
		`PRAGMA temp_store_directory = '` + strings.ReplaceAll(filepath.Dir(path), `'`, `''`) + `'`,
		fmt.Sprintf(`PRAGMA auto_vacuum = %d`, incremental), `VACUUM`,
	}
	for _, step := range steps {
		if _, err = db.ExecContext(ctx, step); err != nil {
			break
		}
	}
	_, reset := db.ExecContext(ctx, `PRAGMA temp_store_directory = ''`) // it is for the process
	return errors.Join(err, reset)
}

// GivesBack returns nil if the file gives the space of deleted rows back to its volume. If not, there was no room to
// prepare a file of an older htcd for it when it was opened: it works as it did, and the next Open tries again.
func (l *Ledger) GivesBack() error {
	if l.unshrinkable == nil {
		return nil
	}
	return fmt.Errorf("prepare the ledger for giving space back: %w", l.explain(l.unshrinkable))
}

// Free returns how many bytes of the file are free: not used, and not given back.
func (tx *Tx) Free() (int64, error) {
	var pages, size int64
	for text, into := range map[string]*int64{`PRAGMA freelist_count`: &pages, `PRAGMA page_size`: &size} {
		if err := tx.queryRow(text).Scan(into); err != nil {
			return 0, fmt.Errorf("count free pages: %w", err)
		}
	}
	return pages * size, nil
}
