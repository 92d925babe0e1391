package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
)

// write brings the rows of a DAG's nodes into line with what was heard, and with what was not if the history was asked.
func (c *Checker) write(ctx context.Context, k *comparison, history bool, at time.Time) error {
	return k.eachTold(history, func(page []int, absent map[int]bool) error {
		var changes []change
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
			changes, err = k.apply(tx, page, absent, at)
			return err
		})
		if errors.Is(err, ledger.ErrNotFound) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return fmt.Errorf("record nodes: %w", err)
		}
		var seen []crosscheck.Change
		for _, ch := range changes {
			run, change := k.run, crosscheck.Change{Was: ch.was.Proc, Is: ch.is.Proc}
			run.Deferred = ch.is.Deferred
			seen = append(seen, change)
			kind, ok := crosscheck.RepairOf(run, change)
			if neverMade := kind == crosscheck.SilentEnd && ch.is.Cluster == 0; ok && !neverMade {
				k.repaired = crosscheck.AddTo(k.repaired, kind, ch.is.Number, change)
			}
		}
		if len(changes) > 0 {
			c.Observer.Used(k.run, crosscheck.CoreSeconds(k.run, seen, at))
			c.Observer.Changed(k.run)
		}
		return nil
	})
}

// tellRepaired passes on what was repaired, which may have been written in several pieces.
func (c *Checker) tellRepaired(all comparisons) {
	for _, k := range all {
		for _, alike := range k.repaired {
			c.Observer.Repaired(k.run, alike)
		}
	}
}

// wordsAtOnce is how many nodes of a DAG something is remembered of, half a kilobyte each, before it is written.
const wordsAtOnce = 10_000

// relieve writes what was heard about a DAG, perhaps nil, as soon as it is much. What cannot be written is forgotten,
// with why.
func (c *Checker) relieve(ctx context.Context, k *comparison, at time.Time) {
	if k == nil || len(k.heard) < wordsAtOnce {
		return
	}
	if k.failed == nil {
		k.failed = c.write(ctx, k, false, at)
	}
	for number := range k.heard { // an earlier job of such a node is not missed
		delete(k.rows, number)
		delete(k.unchanged, number)
	}
	k.heard = nil
}

// eachTold calls fn with the numbers of the nodes of which something was heard, or nothing though the history was
// asked.
func (k *comparison) eachTold(history bool, fn func(page []int, absent map[int]bool) error) error {
	numbers := k.missing()
	if !history {
		numbers = nil
	}
	absent := make(map[int]bool, len(numbers))
	for _, number := range numbers {
		absent[number] = true
	}
	for number := range k.heard {
		if !absent[number] {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	for page := range slices.Chunk(numbers, crosscheck.PageSize) {
		if err := fn(page, absent); err != nil {
			return err
		}
	}
	return nil
}

// change is one row before and after.
type change struct{ was, is ledger.Node }

// apply applies what was heard, or the absence of everything, to some rows.
func (k *comparison) apply(tx *ledger.Tx, numbers []int, absent map[int]bool, at time.Time) ([]change, error) {
	changes, err := k.changes(tx, numbers, absent, at)
	if err != nil {
		return nil, err
	}
	for _, ch := range changes {
		if err := tx.UpdateNode(ch.is); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// changes returns which of some rows differ, and what they are to be.
func (k *comparison) changes(tx *ledger.Tx, numbers []int, absent map[int]bool, at time.Time) ([]change, error) {
	run, err := tx.Run(k.run.UID, k.run.Attempt) // a stop may have begun since
	if err != nil {
		return nil, err
	}
	rows, err := tx.NodesAmong(k.run.UID, k.run.Attempt, numbers)
	if err != nil {
		return nil, err
	}
	fate := k.dag
	fate.run.Stop = run.Stop
	var changes []change
	for _, was := range rows {
		is, changed := was, false
		for _, w := range k.heard[was.Number] {
			var more bool
			is, more = w.apply(is, run.Stop)
			changed = changed || more
		}
		if absent[was.Number] && is.Cluster == was.Cluster {
			var more bool
			is, more = miss(is, fate, k.doubtful, at)
			changed = changed || more
		}
		if changed {
			changes = append(changes, change{was, is})
		}
	}
	return changes, nil
}
