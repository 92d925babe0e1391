package ledger

import (
	"context"
	"fmt"
	"sync/atomic"
)

// maxBatch bounds the writes of one commit, and those waiting for the next.
const maxBatch = 512

// write is one call of Write on its way through the writing goroutine.
type write struct {
	fn   func(*Tx) error
	took atomic.Bool // set by the side that decides: the writing goroutine to run fn, or Write to give up
	done chan struct{}

	err   error // the outcome, written before done is closed
	panic any   // what fn panicked with
}

func (w *write) finish(err error) {
	w.err = err
	close(w.done)
}

// Write runs fn in a transaction and returns nil only when its changes are on disk. Calls that arrive together share
// one commit, each in a savepoint of its own: an error of fn reverts only its own part and is returned unchanged; an
// error of the commit is returned to all, and none of them has changed anything. fn runs at most once, in another
// goroutine. It must neither call Write or Read nor wait for anything, since all others wait for it.
//
// If ctx ends, a waiting fn is not run. Once fn has begun, Write waits for the outcome, so that the caller always knows
// it.
func (l *Ledger) Write(ctx context.Context, fn func(*Tx) error) error {
	w := &write{fn: fn, done: make(chan struct{})}
	if err := l.submit(ctx, w); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.took.CompareAndSwap(false, true) {
			return fmt.Errorf("write ledger: %w", ctx.Err())
		}
		<-w.done
	}
	if w.panic != nil {
		panic(w.panic)
	}
	return l.explain(w.err)
}

// submit hands w to the writing goroutine. Close takes the lock for writing, so that all earlier writes are also
// answered.
func (l *Ledger) submit(ctx context.Context, w *write) error {
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed {
		return ErrClosed
	}
	select {
	case l.writes <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeLoop takes the waiting writes and commits them together, while the next batch gathers by itself: the slower the
// disk, the larger the batches.
func (l *Ledger) writeLoop() {
	defer close(l.drained)
	for {
		select {
		case w, ok := <-l.writes:
			if !ok {
				return
			}
			if batch := l.gather(w); len(batch) > 0 {
				l.writeBatch(batch)
			}
		case <-l.space.due():
		}
		l.shrink()
	}
}

// gather returns w and what else waits.
func (l *Ledger) gather(w *write) []*write {
	batch := take(make([]*write, 0, maxBatch), w)
	for len(batch) < maxBatch {
		select {
		case w, ok := <-l.writes:
			if !ok {
				return batch
			}
			batch = take(batch, w)
		default:
			return batch
		}
	}
	return batch
}

// take adds w unless its caller has given up.
func take(batch []*write, w *write) []*write {
	if w.took.CompareAndSwap(false, true) {
		return append(batch, w)
	}
	return batch
}

// writeBatch runs a batch in one transaction and answers every write in it.
func (l *Ledger) writeBatch(batch []*write) {
	ctx := context.Background()
	if l.writer == nil { // the last batch found the file unavailable
		c, err := connect(ctx, l.writeDB)
		if err != nil {
			finishAll(batch, fmt.Errorf("write ledger: %w", err))
			return
		}
		l.writer = c
	}
	joined, err := l.runBatch(ctx, batch)
	if err == nil {
		l.look(ctx)
		err = l.commitBatch(ctx)
	}
	if err == nil {
		finishAll(joined, nil)
		return
	}
	_, _ = l.writer.sql.ExecContext(ctx, `ROLLBACK`) // fails if SQLite has rolled back by itself
	if IsUnavailable(err) {
		l.writer.discard()
		l.writer, l.space.excess = nil, 0 // the next write looks again
	}
	finishAll(joined, fmt.Errorf("write ledger: %w", err))
}

// runBatch runs each fn in its savepoint. It answers those that failed by themselves and returns the others; on an
// error, the transaction is lost for all of these.
func (l *Ledger) runBatch(ctx context.Context, batch []*write) (joined []*write, err error) {
	if _, err := l.writer.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return batch, err
	}
	if err := l.file.differs(l.path); err != nil { // now that no other program can write it
		return batch, err
	}
	for i, w := range batch {
		fnErr, err := l.runOne(ctx, w)
		switch {
		case err != nil:
			return append(joined, batch[i:]...), err
		case IsUnavailable(fnErr): // this affects all, and this connection may never recover
			return append(joined, batch[i:]...), fnErr
		case fnErr != nil || w.panic != nil:
			w.finish(fnErr)
		default:
			joined = append(joined, w)
		}
	}
	return joined, nil
}

// runOne runs one fn. Its own error is fnErr; err means that the whole transaction is gone, as after a full disk, where
// SQLite rolls back by itself and the savepoint no longer exists.
func (l *Ledger) runOne(ctx context.Context, w *write) (fnErr, err error) {
	if _, err := l.writer.exec(ctx, `SAVEPOINT one`); err != nil {
		return nil, err
	}
	fnErr = w.run(&Tx{ctx: ctx, conn: l.writer})
	if fnErr != nil || w.panic != nil {
		_, err = l.writer.exec(ctx, `ROLLBACK TO one`)
	}
	if err == nil {
		_, err = l.writer.exec(ctx, `RELEASE one`)
	}
	if err != nil && fnErr != nil {
		err = fnErr // it names the cause
	}
	return fnErr, err
}

// run keeps a panic for the goroutine that called Write.
func (w *write) run(tx *Tx) (err error) {
	defer func() { w.panic = recover() }()
	return w.fn(tx)
}

func (l *Ledger) commitBatch(ctx context.Context) error {
	l.commit.Lock()
	defer l.commit.Unlock()
	_, err := l.writer.exec(ctx, `COMMIT`)
	if err == nil {
		l.file.note()
	}
	return err
}

func finishAll(batch []*write, err error) {
	for _, w := range batch {
		w.finish(err)
	}
}
