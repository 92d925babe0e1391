package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// write brings the ledger into line with the findings about one run.
func (c *Checker) write(ctx context.Context, k *comparison, at time.Time) error {
	if k.neverRan {
		c.Observer.Repaired(k.run, Alike{Kind: Unstaged})
		return c.giveBack(ctx, k.run, at)
	}
	pages := slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(k.observed)), PageSize))
	if len(pages) == 0 {
		pages = [][]int{nil}
	}
	var repaired []Alike
	defer func() {
		for _, alike := range repaired {
			c.Observer.Repaired(k.run, alike)
		}
	}()
	for i, page := range pages {
		observed := make(map[int]Observation, len(page))
		for _, proc := range page {
			observed[proc] = k.observed[proc]
		}
		var changes []Change
		is, extent := k.run, k.extent
		if i < len(pages)-1 {
			extent = OfSome
		}
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
			if k.scope == calledLost { // another attempt may have begun since
				if newest, err := tx.LatestRun(k.run.UID); err != nil || newest.Attempt != k.run.Attempt {
					return errors.Join(err, ledger.ErrNotFound)
				}
			}
			is, changes, err = Observe(tx, k.run.UID, k.run.Attempt, observed, at, extent)
			for _, change := range changes {
				if err == nil && c.GoesOn != nil && change.Was.Fetched != ledger.NotFetched &&
					change.Is.Fetched == ledger.NotFetched {
					err = c.GoesOn(k.run, change.Is.Proc)
				}
			}
			return err
		})
		if errors.Is(err, ledger.ErrNotFound) {
			return nil // deleted or sent anew meanwhile
		}
		if err != nil {
			return fmt.Errorf("record cross-check: %w", err)
		}
		for _, r := range changes {
			if kind, ok := RepairOf(k.run, r); ok {
				repaired = AddTo(repaired, kind, r.Is.Proc, r)
			}
		}
		if len(changes) > 0 {
			c.Observer.Used(k.run, CoreSeconds(k.run, changes, at))
			c.Observer.Changed(k.run)
		}
		k.run = is
	}
	return nil
}

// giveBack records that a run never ran, so that it is sent as a new attempt. A DAG keeps its place among those of its
// attempt: it is sent again, with the same nodes.
func (c *Checker) giveBack(ctx context.Context, run ledger.Run, at time.Time) error {
	return c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		run, err := tx.Run(run.UID, run.Attempt)
		if err != nil {
			return err
		}
		if run.Kind == ledger.Workflows && run.Stop == "" {
			return tx.Reopen(run)
		}
		run.State, run.Reason, run.Message = ledger.Removed, ReasonStagingFailed, "the schedd never got its files"
		run.Ended, run.Checked, run.Confirmed = at, at, true
		return tx.UpdateRun(run)
	})
}
