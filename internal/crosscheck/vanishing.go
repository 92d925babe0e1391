package crosscheck

import (
	"context"
	"fmt"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// A schedd whose spool is not mounted yet, or that another one stands in for, answers with an empty queue and an empty
// history, as one does from which single jobs have vanished. Jobs that are called lost are sent again by people, and
// those that come back run beside them. So jobs get more time when a large share of them is missing at once, or the
// schedd has just been started, or has another queue than when they were sent.

// LostAfterMany is LostAfter for jobs that are missing in such a way.
const LostAfterMany = time.Hour

// few is how many jobs may be missing at once, whatever their share.
const few = 10

// Doubt is why jobs that neither queue nor history shows may be there nevertheless; empty: there is no reason.
type Doubt string

// Doubts.
const (
	ManyMissing Doubt = "more than half of the open jobs are missing at once"
	NewStart    Doubt = "the schedd was started less than an hour ago"
	OtherQueue  Doubt = "the schedd has another queue than when they were sent"
)

// After is how long jobs must leave no trace to be lost.
func (d Doubt) After() time.Duration {
	if d == "" {
		return LostAfter
	}
	return LostAfterMany
}

// DoubtOf returns that about missing jobs of a run of which so many are open, and missing, together with those of other
// runs.
func DoubtOf(run ledger.Run, d schedd.Daemon, open, missing int, at time.Time) Doubt {
	started := time.Unix(d.Started, 0)
	switch {
	case Another(d, run.Submitted):
		return OtherQueue
	case run.Stop != "": // htcd itself removes its jobs; the history may be too short for them
		return ""
	case started.After(run.Submitted) && at.Sub(started) < LostAfterMany:
		return NewStart
	case missing >= few && 2*missing > open:
		return ManyMissing
	}
	return ""
}

// Another reports whether a schedd answers with another queue than that to which something had been sent: one that was
// set up later, or not the one with which it answered then. A schedd that does not say has always had the same queue,
// and what was sent at an unknown time may have been sent to this one.
func Another(d schedd.Daemon, sent time.Time) bool {
	switch born := time.Unix(d.QueueBorn, 0); {
	case sent.IsZero() || d.QueueBorn == 0:
		return false
	case born.After(sent):
		return true
	}
	then := d.QueueBorn
	for i, q := range d.Queues {
		// The first may have answered before that was noted.
		if !q.Since.After(sent) || i == 0 && !time.Unix(q.Born, 0).After(sent) {
			then = q.Born
		}
	}
	return then != d.QueueBorn
}

// Missing is how many open jobs are missing and not called lost yet, and one reason for that.
type Missing struct {
	Jobs  int
	Doubt Doubt
}

// doubt sets that of each run with missing jobs.
func (c *Checker) doubt(ctx context.Context, all comparisons, l *look, at time.Time) error {
	open, missing, err := c.countMissing(ctx, all)
	if err != nil {
		return err
	}
	daemon := sync.OnceValue(func() schedd.Daemon { return l.Daemon(c.Daemon(l.target)) })
	for _, k := range all {
		if n := k.missing(); n > 0 {
			if k.doubt = DoubtOf(k.run, daemon(), open, missing, at); k.doubt != "" {
				l.missing = Missing{l.missing.Jobs + n, k.doubt}
			}
		}
	}
	if l.missing.Jobs > 0 {
		c.Observer.Missing(l.target, l.missing)
	}
	return nil
}

// countMissing counts the open jobs, and the missing ones among them, of runs that htcd does not stop. The former are
// read only if it matters.
func (c *Checker) countMissing(ctx context.Context, all comparisons) (open, missing int, err error) {
	for _, k := range all {
		if k.run.Stop == "" {
			missing += k.missing()
		}
	}
	if missing < few {
		return 0, missing, nil
	}
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, k := range all {
			if k.run.Stop != "" {
				continue
			}
			counts, err := tx.Counts(k.run.UID, k.run.Attempt)
			if err != nil {
				return err
			}
			open += counts.Active - counts.Waiting
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count the open jobs: %w", err)
	}
	return open, missing, nil
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
