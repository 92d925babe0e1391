package schedd

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// HistoryBounds keep a history query cheap: without them the schedd reads its whole
// history, 2.7 s for 100,000 ads; Limit 1000 or ScanLimit 1000 take 0.03 s.
type HistoryBounds struct {
	Limit     int    // stop after so many matches; 0: no limit
	ScanLimit int    // look at no more than so many ads; 0: no limit
	Since     string // stop at this ad, "cluster.proc", or at the first that matches this expression; it is not shown
}

// History calls fn for every matching job that left the queue, usually newest first by the time of leaving, not by id;
// for some perhaps twice. It ends, without an error, where the schedd's history ends: older jobs are rotated away (3
// files of 20 MB by default), and a remote query sees at most the newest 50,000. Errors are those of Queue.
func (c *Client) History(ctx context.Context, id Identity, constraint string, b HistoryBounds, fn func(Job) error) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	q := question{command: command{name: "condor_history", args: args, id: id, timeout: c.o.Timeout}, constraint: constraint}
	if c.longLines.at(id.Endpoint) {
		return c.forwards(ctx, q, b, fn)
	}
	err = c.answer(ctx, q.backwards(b), fn)
	if KindOf(err) != Timeout || ctx.Err() != nil || c.Answers(ctx, id) != nil || !c.short(ctx, q) {
		return err
	}
	// The schedd answers. It reads its history from the end, in blocks, and copies the whole partial line with every
	// block: a line of 17 MB, which a job's owner can cause, takes minutes. From the beginning it takes a second.
	c.longLines.note(id.Endpoint)
	return c.forwards(ctx, q, b, fn)
}

// maxForwards is below the number of ads after which a schedd stops reading its history for a remote query, 50,000: of
// a longer one it would show the oldest.
const maxForwards = 40_000

// short reports whether the history can be read entirely from its beginning.
func (c *Client) short(ctx context.Context, q question) bool {
	n := 0
	q.args, q.constraint = append(slices.Clone(q.args), "-forwards", "-json"), ""
	err := c.ask(ctx, q.about("ClusterId,ProcId,JobStatus"), func(Job) error { n++; return nil })
	return err == nil && n < maxForwards
}

// backwards reads from the newest on, within the bounds.
func (q question) backwards(b HistoryBounds) question {
	q.args = append(slices.Clone(q.args), "-backwards", "-json")
	if b.Limit > 0 {
		q.limits = append(q.limits, "-limit", strconv.Itoa(b.Limit))
	}
	if b.ScanLimit > 0 {
		q.limits = append(q.limits, "-scanlimit", strconv.Itoa(b.ScanLimit))
	}
	if b.Since != "" {
		q.bounds = append(q.bounds, "-since", b.Since)
	}
	return q
}

// forwards reads all of the history; of the bounds only Limit counts, which keeps the newest.
func (c *Client) forwards(ctx context.Context, q question, b HistoryBounds, fn func(Job) error) error {
	q.args = append(slices.Clone(q.args), "-forwards", "-json")
	if b.Limit == 0 {
		return c.answer(ctx, q, fn)
	}
	var newest []Job
	err := c.answer(ctx, q, func(j Job) error {
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

// longLines remembers that the history is better read from its beginning, for a while: it is rotated at some time.
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
