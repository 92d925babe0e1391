package crosscheck

import (
	"cmp"
	"context"
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
	asked := c.QueryEach(ctx, id, questions(runs), schedd.Query{}, func(j condor.Job) error {
		if err := wait(); err != nil {
			return err
		}
		l.Hear(j)
		return hear(j)
	})
	return all, cmp.Or(wait(), asked)
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
	return c.Query(ctx, id, left, all.hearer("condor_history", at, taken))
}

// NewestHistory returns the id of the job that left the queue last, "" if none ever did.
func (c *Checker) NewestHistory(ctx context.Context, id schedd.Identity) (string, error) {
	return c.Newest(ctx, id, false)
}
