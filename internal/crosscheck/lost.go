package crosscheck

import (
	"context"
	"errors"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// What was called lost may be there again: the spool is mounted, or the schedd is back for which another one answered. Then HTCondor's word
// holds, as for every other job.

// LookBack is how long after its end a run is compared again because of lost jobs.
const LookBack = 7 * 24 * time.Hour

// looked tells when HTCondor was last asked about lost jobs, of how many runs, and how often in a row.
type looked struct {
	at      time.Time
	started int64 // when the schedd had been started; 0: unknown
	runs    int
	times   int
}

// rarest is how rarely it is asked in the end: each time it reads its complete history.
const rarest = 24 * time.Hour

// MayLookForLost reports whether a target is to be asked about so many runs with lost jobs, and notes that it is: for the first time, when there are
// more of them, after a start of its schedd, and then after pauses that double, the first of which is given.
func (g *Gate) MayLookForLost(t backend.Target, at time.Time, started int64, runs int, pause time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, before := g.looked[t]
	same := before && last.started == started && runs <= last.runs
	if same && at.Sub(last.at) < min(pause<<min(last.times, 10), max(rarest, pause)) {
		return false
	}
	if g.looked == nil {
		g.looked = map[backend.Target]looked{}
	}
	now := looked{at: at, started: started, runs: runs}
	if same {
		now.times = last.times + 1
	}
	g.looked[t] = now
	return true
}

// LookForLostAgain has it asked in the next pass: this one got no answer.
func (g *Gate) LookForLostAgain(t backend.Target) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.looked, t)
}

// lookForLost compares the jobs that were called lost with queue and history.
func (c *Checker) lookForLost(ctx context.Context) error {
	var runs []ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.LostRuns(c.Kind, c.Now().Add(-LookBack))
		return err
	})
	if err != nil || len(runs) == 0 {
		return err
	}
	pass := Pass{Kind: LookingForLost, Runs: runs, As: c.As, Now: c.Now, Over: c.Observer.Passed}
	return c.gate.Each(ctx, pass, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		if !c.gate.MayLookForLost(g.Target, c.Now(), c.started(ctx, id, g.Target), len(g.Runs), c.Whole) {
			return nil
		}
		var errs []error
		for _, some := range parts(g.Runs) {
			errs = append(errs, c.compareLost(ctx, id, some))
		}
		err := errors.Join(errs...)
		if err != nil {
			c.gate.LookForLostAgain(g.Target)
		}
		return err
	})
}

func (c *Checker) compareLost(ctx context.Context, id schedd.Identity, runs []ledger.Run) error {
	at := c.Now()
	all, err := c.askQueue(ctx, id, runs, calledLost, &look{}, at)
	if err != nil {
		return err
	}
	if err := c.askHistory(ctx, id, all, Mark{}, at, nil); err != nil {
		return err
	}
	var errs []error
	for _, run := range runs {
		if k := all[KeyOf(run)]; len(k.observed) > 0 {
			errs = append(errs, c.write(ctx, k, at))
			c.Observer.Checked(k.run)
		}
	}
	return errors.Join(errs...)
}

// takesBack reports whether HTCondor has shown a job that was called lost.
func (c Change) takesBack() bool { return c.Was.Reason == ReasonLost && c.Is.Reason != ReasonLost }
