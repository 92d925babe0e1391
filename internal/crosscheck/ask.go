package crosscheck

import (
	"context"
	"fmt"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// hearer returns a function that compares each ad that a tool shows.
func (all comparisons) hearer(tool string, at time.Time, taken func(*comparison)) func(condor.Job) error {
	return func(j condor.Job) error {
		k := all.of(j)
		if k == nil {
			return nil
		}
		if k.needsReason(j) {
			return schedd.ErrReasons
		}
		k.take(j, tool, at)
		if taken != nil {
			taken(k)
		}
		return nil
	}
}

// askQueue compares the queue with the rows of some runs. The rows are read while condor_q gathers its answer; a full
// comparison reads them first, because it depends on what a row said before HTCondor was asked.
func (c *Checker) askQueue(
	ctx context.Context,
	id schedd.Identity,
	runs []ledger.Run,
	s scope,
	l *look,
	at time.Time,
) (comparisons, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all := newComparisons(runs, s, l.made)
	read := make(chan error, 1)
	if s != unconfirmed {
		read <- c.readRows(ctx, runs, all)
	} else {
		go func() { read <- c.readRows(ctx, runs, all) }()
	}
	wait := sync.OnceValue(func() error { return <-read })
	hear := all.hearer("condor_q", at, nil)
	var asked error
	for _, some := range questions(runs) {
		asked = c.Schedd.Query(ctx, id, schedd.Query{Where: some}, func(j condor.Job) error {
			if err := wait(); err != nil {
				return err
			}
			l.Hear(j)
			return hear(j)
		})
		if asked != nil {
			break
		}
	}
	if err := wait(); err != nil {
		return nil, err
	}
	if asked != nil {
		return nil, fmt.Errorf("cross-check queue: %w", asked)
	}
	return all, nil
}

// askHistory compares the history with what the queue did not show. If everything missing left the queue after the
// mark, the history is read only back to the mark.
func (c *Checker) askHistory(
	ctx context.Context,
	id schedd.Identity,
	all comparisons,
	since Mark,
	at time.Time,
	taken func(*comparison),
) error {
	var gone []int
	bound := schedd.HistoryBounds{Since: since.Newest}
	for _, k := range all {
		if k.unseen() == 0 {
			continue
		}
		gone = append(gone, k.run.Cluster)
		if !k.sinceMark(since) {
			bound.Since = ""
		}
	}
	if len(gone) == 0 {
		return nil
	}
	bound.Enough = all.seen
	left := schedd.Query{Where: constraint(gone), Left: &bound}
	if err := c.Schedd.Query(ctx, id, left, all.hearer("condor_history", at, taken)); err != nil {
		return fmt.Errorf("cross-check history: %w", err)
	}
	return nil
}

// NewestHistory returns the id of the job that left the queue last, "" if none ever did.
func (c *Checker) NewestHistory(ctx context.Context, id schedd.Identity) (string, error) {
	return NewestHistory(ctx, id, c.Schedd, false)
}

// NewestHistory returns the id of the job that entered a history last, "" if none ever did.
func NewestHistory(
	ctx context.Context,
	id schedd.Identity,
	s Schedd,
	nodes bool,
) (newest string, err error) {
	last := schedd.Query{Where: condor.Any, Nodes: nodes, Left: &schedd.HistoryBounds{Limit: 1}}
	err = s.Query(ctx, id, last, func(j condor.Job) error {
		newest = j.ID()
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cross-check history: %w", err)
	}
	return newest, nil
}
