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
	known, err := c.fromEnd(ctx, q, b, fn)
	if known == unsuspected {
		return err
	}
	if known != found {
		n, err := c.length(ctx, q)
		switch {
		case err != nil:
			return err
		case n >= maxForwards:
			c.longLines.note(q.id.Endpoint, unsuspected, 0)
			return &condor.Error{
				Command: q.name,
				Kind:    condor.Timeout,
				Stderr:  "no answer from the end of the history, which is too long to be read from its beginning",
			}
		}
		c.longLines.note(q.id.Endpoint, found, longLinesLast)
	}
	return c.forwards(ctx, q, b, fn)
}

// fromEnd reads from the newest unless that is suspected to take minutes: a schedd reads its history from the end in
// blocks, and copies the partial line with every block: a line of 17 MB, which a job's owner can cause, takes minutes.
// From the beginning it takes a second. A schedd goes on with what was given up, on which nobody should wait once more,
// so one at a time finds out.
func (c *Client) fromEnd(ctx context.Context, q question, b HistoryBounds, fn condor.JobFunc) (suspicion, error) {
	one, _ := c.longLines.reading.LoadOrStore(q.id.Endpoint, make(chan struct{}, 1))
	reading := one.(chan struct{})
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return unsuspected, ctx.Err()
	}
	if known := c.longLines.of(q.id.Endpoint); known != unsuspected {
		return known, nil
	}
	err := c.answer(ctx, q.backwards(b), fn)
	if condor.KindOf(err) != condor.Timeout || ctx.Err() != nil || !c.answers(ctx, q.id) {
		return unsuspected, err
	}
	c.longLines.note(q.id.Endpoint, suspected, givenUpLasts)
	return suspected, nil
}

// maxForwards is less than the 50,000 ads after which a schedd stops reading its history for a remote query: of a
// longer history it would show the oldest.
const maxForwards = 40_000

// length returns how many jobs the complete history has, read from its beginning.
func (c *Client) length(ctx context.Context, q question) (n int, err error) {
	q.args, q.Where = append(slices.Clone(q.args), "-forwards", "-json"), ""
	err = c.ask(ctx, q.about("ClusterId,ProcId,JobStatus"), func(condor.Job) error { n++; return nil })
	return n, err
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

// longLines remembers for a while which histories are better read from their beginning; eventually they are rotated.
type longLines struct {
	mu      sync.Mutex
	m       map[Endpoint]longLine
	reading sync.Map // by Endpoint: a chan struct{} that holds the one that reads from the end
}

type longLine struct {
	is    suspicion
	until time.Time
}

type suspicion int

const (
	unsuspected suspicion = iota
	suspected             // it was not read from its end
	found                 // and it is short enough to be read from its beginning
)

const (
	longLinesLast = time.Hour
	// givenUpLasts is about as long as a schedd goes on with a reading that nobody waits for any more. Each one more
	// takes a processor of its host, until not even the beginning is read in time.
	givenUpLasts = 5 * time.Minute
)

func (l *longLines) of(endpoint Endpoint) suspicion {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.m[endpoint]; time.Now().Before(known.until) {
		return known.is
	}
	return unsuspected
}

func (l *longLines) note(endpoint Endpoint, is suspicion, lasts time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[Endpoint]longLine{}
	}
	l.m[endpoint] = longLine{is, time.Now().Add(lasts)}
}
