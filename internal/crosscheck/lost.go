package crosscheck

import (
	"context"
	"errors"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// What was called lost may be there again: the spool is mounted, or the schedd is back for which another one answered.
// Then HTCondor's word holds, as for every other job.

// lookBack is how long after its end a run is compared again because of lost jobs.
const lookBack = 7 * 24 * time.Hour

// looked tells when HTCondor was last asked about lost jobs, of how many runs, and how often in a row.
type looked struct {
	at      time.Time
	started int64 // when the schedd had been started; 0: unknown
	runs    int
	times   int
}

// rarest is how rarely it is asked in the end: each time it reads its complete history.
const rarest = 24 * time.Hour

// mayLookForLost reports whether a target is to be asked about so many runs with lost jobs, and notes that it is: for
// the first time, when there are more of them, after a start of its schedd, and then after pauses that double, the
// first of which is given.
func (g *Gate) mayLookForLost(t backend.Target, at time.Time, started int64, runs int, pause time.Duration) (may bool) {
	g.change(t, func(k *known) {
		last := k.looked
		same := last.started == started && runs <= last.runs
		if may = !same || at.Sub(last.at) >= min(pause<<min(last.times, 10), max(rarest, pause)); !may {
			return
		}
		k.looked = looked{at: at, started: started, runs: runs}
		if same {
			k.looked.times = last.times + 1
		}
	})
	return may
}

// lookForLostAgain has it asked in the next pass: this one got no answer.
func (g *Gate) lookForLostAgain(t backend.Target) {
	g.change(t, func(k *known) { k.looked = looked{} })
}

// LookForLost has compare ask about the runs that lost returns, some of whose jobs were called lost since then, where
// that is due. A pass without an answer does not count. started returns when a schedd had been started.
func (d *Driver[O]) LookForLost(
	ctx context.Context,
	lost func(tx *ledger.Tx, since time.Time) ([]ledger.Run, error),
	started func(context.Context, schedd.Identity, backend.Target) int64,
	compare func(context.Context, schedd.Identity, backend.Group) error,
) error {
	which := func(tx *ledger.Tx) ([]ledger.Run, error) { return lost(tx, d.Now().Add(-lookBack)) }
	return d.Each(ctx, LookingForLost, which, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		if !d.mayLookForLost(g.Target, d.Now(), started(ctx, id, g.Target), len(g.Runs), d.Whole) {
			return nil
		}
		err := compare(ctx, id, g)
		if err != nil {
			d.lookForLostAgain(g.Target)
		}
		return err
	})
}

// lookForLost compares the jobs that were called lost with queue and history.
func (c *Checker) lookForLost(ctx context.Context) error {
	lost := func(tx *ledger.Tx, since time.Time) ([]ledger.Run, error) { return tx.LostRuns(c.Kind, since) }
	return c.LookForLost(ctx, lost, c.started, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		var errs []error
		for _, some := range parts(g.Runs) {
			errs = append(errs, c.compareLost(ctx, id, some))
		}
		return errors.Join(errs...)
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
		if k := all[keyOf(run)]; len(k.observed) > 0 {
			errs = append(errs, c.write(ctx, k, at))
			c.Observer.Checked(k.run)
		}
	}
	return errors.Join(errs...)
}

// takesBack reports whether HTCondor has shown a job that was called lost.
func (c Change) takesBack() bool { return c.Was.Reason == ReasonLost && c.Is.Reason != ReasonLost }
