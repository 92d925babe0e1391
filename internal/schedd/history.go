package schedd

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// HistoryBounds keeps a history query cheap: without bounds the schedd reads its complete history, 2.7 s for 100,000
// ads; Limit 1000 or ScanLimit 1000 takes 0.03 s.
type HistoryBounds struct {
	Limit     int    // stop after this many matches; 0: no limit
	ScanLimit int    // look at no more than this many ads; 0: no limit
	Since     string // stop before this ad, "cluster.proc", or before the first that matches this expression

	// Enough reports whether every job that is looked for has been seen. With it all jobs come with their reasons, from
	// one reading of the history; only if it reports false, the history is read again, for those whose reasons are too
	// long to be requested. nil: jobs come without reasons, see ErrReasons.
	Enough func() bool
}

func (c *Client) history(ctx context.Context, id Identity, q question, b HistoryBounds, fn condor.JobFunc) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	q.command = command{name: "condor_history", args: args, id: id, timeout: c.o.Timeout}
	if b.Enough == nil {
		return c.left(ctx, q, b, fn)
	}
	err = c.left(ctx, q.explained(), b, func(j condor.Job) error {
		j.Reasoned = true
		return fn(j)
	})
	if err != nil || b.Enough() {
		return err
	}
	q.Where = both(q.Where, "!("+small(reasons)+")")
	return c.left(ctx, q, b, func(j condor.Job) error { return fn(unexplained(j)) })
}

// left asks within the bounds.
func (c *Client) left(ctx context.Context, q question, b HistoryBounds, fn condor.JobFunc) error {
	if c.longLines.at(q.id.Endpoint) {
		return c.forwards(ctx, q, b, fn)
	}
	err := c.answer(ctx, q.backwards(b), fn)
	if condor.KindOf(err) != condor.Timeout || ctx.Err() != nil || !c.answers(ctx, q.id) || !c.short(ctx, q) {
		return err
	}
	// The schedd answers, but it reads its history from the end in blocks, and copies the partial line with every
	// block: a line of 17 MB, which a job's owner can cause, takes minutes. From the beginning it takes a second.
	c.longLines.note(q.id.Endpoint)
	return c.forwards(ctx, q, b, fn)
}

// maxForwards is less than the 50,000 ads after which a schedd stops reading its history for a remote query: of a
// longer history it would show the oldest.
const maxForwards = 40_000

// short reports whether the complete history can be read from its beginning.
func (c *Client) short(ctx context.Context, q question) bool {
	n := 0
	q.args, q.Where = append(slices.Clone(q.args), "-forwards", "-json"), ""
	err := c.ask(ctx, q.about("ClusterId,ProcId,JobStatus"), func(condor.Job) error { n++; return nil })
	return err == nil && n < maxForwards
}

// backwards reads from the newest, within the bounds.
func (q question) backwards(b HistoryBounds) question {
	q.args = append(slices.Clone(q.args), "-backwards", "-json")
	if b.Limit > 0 {
		q.limits, q.most = append(q.limits, "-limit", strconv.Itoa(b.Limit)), b.Limit
	}
	if b.ScanLimit > 0 {
		q.limits = append(q.limits, "-scanlimit", strconv.Itoa(b.ScanLimit))
	}
	if b.Since != "" {
		q.bounds, q.since = append(q.bounds, "-since", b.Since), b.Since
	}
	return q
}

// forwards reads the complete history; of the bounds only Limit applies, which keeps the newest.
func (c *Client) forwards(ctx context.Context, q question, b HistoryBounds, fn condor.JobFunc) error {
	q.args = append(slices.Clone(q.args), "-forwards", "-json")
	if b.Limit == 0 {
		return c.answer(ctx, q, fn)
	}
	var newest []condor.Job
	err := c.answer(ctx, q, func(j condor.Job) error {
		if newest = append(newest, j); len(newest) > b.Limit {
			newest = newest[1:]
		}
		return nil
	})
	for i := len(newest) - 1; i >= 0 && err == nil; i-- {
		err = fn(newest[i])
	}
	return err
}

// longLines remembers for a while that the history is better read from its beginning; eventually the history is
// rotated.
type longLines struct {
	mu sync.Mutex
	m  map[Endpoint]time.Time
}

// longLinesLast is how long that is remembered.
const longLinesLast = time.Hour

func (l *longLines) at(endpoint Endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.m[endpoint])
}

func (l *longLines) note(endpoint Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[Endpoint]time.Time{}
	}
	l.m[endpoint] = time.Now().Add(longLinesLast)
}
