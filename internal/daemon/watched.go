package daemon

import (
	"context"
	"errors"
	"sync"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
)

// watchedLedger notices when the file is damaged or gone: trying again cannot help then, so the work has to end. Until
// it has, every caller gets the error itself.
type watchedLedger struct {
	reconciler.Ledger
	gone chan struct{} // closed at the first such error
	once sync.Once
	err  error
}

func watchLedger(book reconciler.Ledger) *watchedLedger {
	return &watchedLedger{Ledger: book, gone: make(chan struct{})}
}

func (w *watchedLedger) Read(ctx context.Context, fn func(*ledger.Tx) error) error {
	return w.look(w.Ledger.Read(ctx, fn))
}

func (w *watchedLedger) Write(ctx context.Context, fn func(*ledger.Tx) error) error {
	return w.look(w.Ledger.Write(ctx, fn))
}

func (w *watchedLedger) look(err error) error {
	if errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrLost) {
		w.once.Do(func() { w.err = err; close(w.gone) })
	}
	return err
}

// wait returns the error when there is one, nil when ctx ends first.
func (w *watchedLedger) wait(ctx context.Context) error {
	select {
	case <-w.gone:
		return w.err
	case <-ctx.Done():
		return nil
	}
}

// verdict is the error, nil while the file is good.
func (w *watchedLedger) verdict() error {
	select {
	case <-w.gone:
		return w.err
	default:
		return nil
	}
}
