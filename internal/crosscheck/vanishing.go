package crosscheck

import (
	"context"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// A schedd whose spool is not mounted yet, or that another one stands in for, answers with an empty queue and an empty history, as one does
// from which single jobs have vanished. Jobs that are called lost are sent again by people, and those that come back run beside them. So when
// a large share of them is missing at once, it is given more time.

// LostAfterMany is LostAfter for jobs of which a large share is missing.
const LostAfterMany = time.Hour

// few is how many jobs may be missing at once, whatever their share.
const few = 10

// lostAfter returns how long jobs must leave no trace to be lost if so many are missing of those that are open.
func lostAfter(open, missing int) time.Duration {
	if missing >= few && 2*missing > open {
		return LostAfterMany
	}
	return LostAfter
}

// patience is lostAfter for what a check has found. Jobs that htcd itself removes do not count: their history may be too short for them.
func (c *Checker) patience(ctx context.Context, all comparisons) (time.Duration, error) {
	missing := 0
	for _, k := range all {
		if k.run.Stop == "" {
			missing += k.missing()
		}
	}
	if missing < few {
		return LostAfter, nil
	}
	open := 0
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, k := range all {
			if k.run.Stop != "" {
				continue
			}
			counts, err := tx.Counts(k.run.UID, k.run.Attempt)
			if err != nil {
				return err
			}
			open += counts.Active
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("count the open jobs: %w", err)
	}
	return lostAfter(open, missing), nil
}

// missing returns how many open procs neither queue nor history showed.
func (k *comparison) missing() int {
	n := len(k.unchanged)
	for _, p := range k.rows {
		if p.Status == ledger.StatusOpen {
			n++
		}
	}
	return n
}
