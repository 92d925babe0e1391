package fetch

import (
	"context"
	"strings"

	"htc.cern.ch/htcd/internal/ledger"
)

// choose finds what to fetch next. Jobs whose files once failed to be sent come after the others, one by one, each when
// its pause is over; until then it returns a pausedError.
func (f *Fetcher) choose(ctx context.Context, key string) (b batch, found bool, err error) {
	runs, err := f.runsOf(ctx, key)
	if err != nil {
		return b, false, err
	}
	var next *failing
	for i := len(runs) - 1; i >= 0; i-- {
		run := runs[i]
		if !f.fetchable(run) || run.UID != runs[len(runs)-1].UID {
			continue // a deleted object must not keep anything in the place of its namesake
		}
		procs, paused, err := f.nextOf(ctx, run)
		if err != nil {
			return b, false, err
		}
		if len(procs) > 0 {
			return batch{run, procs}, true, nil
		}
		if paused != nil && (next == nil || paused.next.Before(next.next)) {
			next = paused
		}
	}
	if next != nil {
		return b, false, &pausedError{next.next, next.err}
	}
	f.pauses.forget(key)
	return b, false, nil
}

// nextOf returns the next procs of a run to fetch, or which paused one comes next.
func (f *Fetcher) nextOf(ctx context.Context, run ledger.Run) (chosen []ledger.Proc, next *failing, err error) {
	for from := 0; ; {
		page, err := ledger.Get(ctx, f.Ledger, func(tx *ledger.Tx) ([]ledger.Proc, error) {
			return tx.Procs(
				run.UID,
				run.Attempt,
				ledger.ProcFilter{Unfetched: true, From: from, Limit: 2 * fetchedAtOnce},
			)
		})
		if err != nil || len(page) == 0 {
			return nil, next, err
		}
		procs, paused := f.pauses.choose(run, page, f.Now())
		if len(procs) > 0 {
			return procs, nil, nil
		}
		if next == nil || paused.next.Before(next.next) {
			next = paused
		}
		from = page[len(page)-1].Proc + 1
	}
}

// arrivedBefore separates output that is already in place, and so complete: since then the ledger was lost, or the
// transaction that should have recorded it.
func (f *Fetcher) arrivedBefore(b batch) (here, wanted []int, err error) {
	for _, p := range b.procs {
		has, err := f.Store.Has(b.attempt(), p.Proc)
		switch {
		case err != nil:
			return nil, nil, err
		case has:
			here = append(here, p.Proc)
		default:
			wanted = append(wanted, p.Proc)
		}
	}
	return here, wanted, nil
}

// runsOf lists the ledger's runs under an HTCJob's name.
func (f *Fetcher) runsOf(ctx context.Context, key string) (runs []ledger.Run, err error) {
	namespace, name, _ := strings.Cut(key, "/")
	return ledger.Get(ctx, f.Ledger, func(tx *ledger.Tx) ([]ledger.Run, error) {
		return tx.Runs(ledger.RunFilter{Namespace: namespace, Name: name})
	})
}
