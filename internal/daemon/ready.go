package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
)

const (
	tryLedgerEvery = 10 * time.Second
	ledgerPatience = 15 * time.Second // SQLite waits 10 s for a lock
	// triedBytes must fit on the volume beside the ledger: on a full volume, overwriting still succeeds.
	triedBytes = 256 << 10
)

// beReady makes the leader ready once it knows the HTCJobs and the Services select it, for as long as the ledger can be
// written: before that no callback can be recorded. It calls back once the ledger can be written again.
func (d *daemon) beReady(
	ctx context.Context, informer cache.SharedIndexInformer, book reconciler.Ledger, back func(),
) error {
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	if d.fence != nil {
		book = fencedLedger{book, d.fence}
	}
	tick := time.NewTicker(tryLedgerEvery)
	defer tick.Stop()
	tried := tries{back: back}
	for d.label(ctx, true) {
		slow := time.AfterFunc(ledgerPatience, func() {
			d.health.unready("the ledger cannot be written: the volume does not answer, or somebody locks the file")
		})
		err := d.tryLedger(ctx, book)
		slow.Stop()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			d.health.unready("the ledger cannot be written: " + err.Error())
		default:
			d.health.ready("ready")
		}
		tried.ended(err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// tries of the ledger call back when one succeeds after one that failed.
type tries struct {
	failed bool
	back   func()
}

func (t *tries) ended(err error) {
	if t.failed && err == nil {
		t.back()
	}
	t.failed = err != nil
}

// tryLedger writes the ledger and a file beside it, which it removes.
func (d *daemon) tryLedger(ctx context.Context, book reconciler.Ledger) error {
	if err := book.Write(ctx, func(tx *ledger.Tx) error { return tx.Touch() }); err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(d.o.LedgerFile()), ".try")
	err := os.WriteFile(file, make([]byte, triedBytes), 0o600)
	if removed := os.Remove(file); err == nil {
		err = removed
	}
	if err != nil {
		return fmt.Errorf("a file beside it: %w", err)
	}
	return nil
}

// sayWhyNotListed shows on /readyz why the HTCJobs are not known yet. It must be called before the informer runs.
func (d *daemon) sayWhyNotListed(informer cache.SharedIndexInformer) error {
	d.health.unready("waiting for the list of HTCJobs")
	return informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if !informer.HasSynced() {
			d.health.unready("HTCJobs cannot be listed: " + err.Error())
		}
	})
}
