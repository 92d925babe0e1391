package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// RunObserver is an Observer of what is compared of runs.
type RunObserver interface {
	Observer
	// Checked: everything HTCondor said about a run has been applied to it.
	Checked(run ledger.Run)
	// Unchanged: the same, but there was nothing new.
	Unchanged(run ledger.Run)
	// Stuck: a cluster was never completely spooled and must be removed.
	Stuck(ctx context.Context, run ledger.Run) error
}

// Checker compares runs with HTCondor. Set its fields before its first use.
type Checker struct {
	Driver[RunObserver]
	Kind ledger.Kind // of the runs in a pass
	// GoesOn is called within the transaction for each job that runs again though its output is here, which is outdated
	// then; nil: there is none.
	GoesOn func(run ledger.Run, proc int) error
	// Mirrors returns what may be asked in the place of a schedd; nil: nothing. The field may be nil.
	Mirrors func(schedd.Endpoint) Mirror

	mirrors mirrors
	// absent asks HTCondor itself about runs with jobs that this Checker's mirror does not show; nil: this one asks
	// HTCondor.
	absent func(ctx context.Context, id schedd.Identity, t backend.Target, runs []ledger.Run) error
}

// Crosscheck makes one pass: it compares every run that HTCondor has not yet confirmed with its schedd's queue,
// compares what left the queue with the history, and repairs the ledger. All targets are asked at once, so that none
// waits for another's schedd. Now and then it looks for what was called lost.
func (c *Checker) Crosscheck(ctx context.Context) error {
	return errors.Join(c.Each(ctx, Crosschecking, c.open, c.whole), c.lookForLost(ctx))
}

// through makes one pass over a target.
func (c *Checker) through(ctx context.Context, id schedd.Identity, g backend.Group) error {
	began := c.Now()
	newest, err := c.NewestHistory(ctx, id)
	if err != nil {
		return err
	}
	started := c.started(ctx, id, g.Target)
	l := &look{Look: Look{History: true, Newest: newest}, target: g.Target}
	answered, err := c.pass(ctx, id, g, l, began, started)
	if !answered {
		return err
	}
	if len(l.absent) > 0 {
		if err := c.absent(ctx, id, g.Target, l.absent); err != nil {
			return err
		}
	}
	if l.missing.Jobs == 0 && len(l.absent) == 0 {
		c.Observer.Missing(g.Target, l.missing)
	}
	c.SetMark(g.Target, Mark{newest, began})
	return err
}

// Refresh asks only the queues, to learn what is idle, running or held between two cross-checks. It concludes nothing
// from a job's absence.
func (c *Checker) Refresh(ctx context.Context) error {
	return c.Each(ctx, Refreshing, c.open, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		return c.mirroredOr(id.Endpoint, func(c *Checker) error {
			_, err := c.pass(ctx, id, g, &look{}, c.Now(), c.Coverage(g.Target).Started)
			return err
		})
	})
}

// started returns when the schedd had been started, 0 if that cannot be found out.
func (c *Checker) started(ctx context.Context, id schedd.Identity, t backend.Target) int64 {
	daemon, err := c.Schedd.Daemon(ctx, id)
	if err != nil {
		return 0 // so everything is asked
	}
	c.change(t, func(k *known) { k.daemon = daemon })
	return daemon.Started
}

// pass asks what has changed since the latest passes about the runs that these covered, and about everything else. A
// run with which something could not be done counts as unread: the others are covered all the same.
func (c *Checker) pass(
	ctx context.Context,
	id schedd.Identity,
	g backend.Group,
	l *look,
	began time.Time,
	started int64,
) (answered bool, err error) {
	if l.made, err = c.addMade(ctx, id, g.Runs); err != nil {
		return false, err
	}
	coverage := c.Coverage(g.Target)
	l.mark, l.unread = c.Mark(g.Target), map[runKey]bool{}
	now, whole, answered, err := c.Pass(&l.Look, g, coverage, began, started,
		func(run ledger.Run) bool { return coverage.covers(run, l.mark) },
		func(runs []ledger.Run) (bool, error) { return c.checkRecent(ctx, id, runs, l) },
		func(runs []ledger.Run) (bool, error) { return c.checkWhole(ctx, id, runs, l) })
	if !answered {
		return false, err
	}
	now.unread = l.unread
	if l.History { // a job whose ad cannot be read may be there
		now.read = map[runKey]bool{}
		for _, run := range whole {
			now.read[keyOf(run)] = !l.unread[keyOf(run)]
		}
	}
	c.Cover(g.Target, now)
	return true, err
}

// Check is Crosscheck for one group of runs.
func (c *Checker) Check(ctx context.Context, g backend.Group) error {
	id, err := c.As(ctx, g.Target)
	if err != nil {
		return err
	}
	return c.mirroredOr(id.Endpoint, func(c *Checker) error {
		made, err := c.addMade(ctx, id, g.Runs)
		if err != nil {
			return err
		}
		l := &look{Look: Look{History: true}, target: g.Target, mark: c.Mark(g.Target), made: made}
		l.Ask = func() schedd.Daemon {
			c.started(ctx, id, g.Target)
			return c.Daemon(g.Target)
		}
		_, err = c.checkWhole(ctx, id, g.Runs, l)
		if err == nil && len(l.absent) > 0 {
			err = c.absent(ctx, id, g.Target, l.absent)
		}
		return err
	})
}

// NewestKnown returns the job that had most recently left a target's queue when the latest cross-check began, "" if
// unknown.
func (c *Checker) NewestKnown(t backend.Target) string { return c.Mark(t.Shared()).Newest }

// open returns the runs whose ends HTCondor has not confirmed.
func (c *Checker) open(tx *ledger.Tx) ([]ledger.Run, error) {
	return tx.Runs(ledger.RunFilter{Kind: c.Kind, State: ledger.Submitted, Unconfirmed: true})
}

// atOnce is how many runs are written concurrently; they share the ledger's commits.
const atOnce = 64

// checkWhole asks the queue, and if requested the history, about runs and applies the answers. It works through the
// runs in parts so that memory use does not grow with the queue. What cannot be done about one run does not keep the
// others from being checked.
func (c *Checker) checkWhole(
	ctx context.Context,
	id schedd.Identity,
	runs []ledger.Run,
	l *look,
) (answered bool, err error) {
	return InParts(parts(runs), func(some []ledger.Run) (bool, error) { return c.checkPart(ctx, id, some, l) })
}

func (c *Checker) checkPart(
	ctx context.Context,
	id schedd.Identity,
	runs []ledger.Run,
	l *look,
) (answered bool, err error) {
	at := c.Now()
	all, err := c.askQueue(ctx, id, runs, unconfirmed, l, at)
	if err != nil {
		return false, err
	}
	if l.History {
		// An entry of the history is final, so it is written while the schedd is still reading.
		var writing errgroup.Group
		writing.SetLimit(atOnce)
		err := c.askHistory(ctx, id, all, l.mark, at, func(k *comparison) {
			if k.unseen() == 0 && !k.applied && !k.quiet() && !k.stuck && !c.doubts(k) {
				k.applied = true
				k.judgeUnstaged()
				writing.Go(func() error {
					k.failed = c.write(ctx, k, at)
					return nil
				})
			}
		})
		_ = writing.Wait() // whose errors are those of the comparisons
		for _, k := range all {
			if k.applied { // only now: updating statuses would take the CPU that the schedd needs to answer
				c.Observer.Checked(k.run)
			}
		}
		if err != nil {
			return false, err
		}
	}
	return true, c.conclude(ctx, runs, all, at, l)
}

// conclude applies findings about runs that have not been written yet.
func (c *Checker) conclude(ctx context.Context, runs []ledger.Run, all comparisons, at time.Time, l *look) error {
	final := l.History && c.absent == nil // HTCondor itself has not got what is missing
	if final {
		if err := c.doubt(ctx, all, l, at); err != nil {
			return err
		}
	}
	var quiet, written []*comparison
	defer func() {
		for _, k := range written { // only now: updating statuses would take the CPU that the writes need
			c.Observer.Checked(k.run)
		}
	}()
	var writing errgroup.Group
	writing.SetLimit(atOnce)
	for _, run := range runs {
		k := all[keyOf(run)]
		if !l.History {
			k.extent = InQueue
		}
		if len(k.unread) > 0 || !k.recent {
			c.Observer.Unread(k.run, k.unread)
		}
		if k.applied {
			continue
		}
		if c.doubts(k) {
			l.absent = append(l.absent, run)
			if l.unread != nil {
				l.unread[keyOf(run)] = true
			}
			continue
		}
		if k.stuck {
			if err := c.Observer.Stuck(ctx, run); err != nil {
				k.failed = fmt.Errorf("remove cluster %d: %w", run.Cluster, err)
				continue
			}
		}
		switch {
		case final:
			k.miss(at)
		case l.History && k.unseen() > 0:
			l.absent = append(l.absent, run)
		}
		if l.History || k.unseen() == 0 { // otherwise the others may be in the history
			k.judgeUnstaged()
		}
		if k.quiet() {
			quiet = append(quiet, k)
			continue
		}
		written = append(written, k)
		writing.Go(func() error {
			k.failed = c.write(ctx, k, at)
			return nil
		})
	}
	_ = writing.Wait() // whose errors are those of the comparisons
	var errs []error
	if l.History {
		errs = append(errs, c.writeQuiet(ctx, quiet, at))
	}
	for _, run := range runs {
		k := all[keyOf(run)]
		if errs = append(errs, k.failed); (k.failed != nil || len(k.unread) > 0) && l.unread != nil {
			l.unread[keyOf(run)] = true
		}
	}
	return errors.Join(errs...)
}

// BetweenChecks is the interval at which a status records that HTCondor was asked and had nothing new. The ledger
// records every cross-check, because the history is read from that point on, and no refresh: jobs may have left the
// queue.
const BetweenChecks = 50 * time.Second

// writeQuiet records that HTCondor was asked about runs in which nothing has changed.
func (c *Checker) writeQuiet(ctx context.Context, quiet []*comparison, at time.Time) error {
	for page := range slices.Chunk(quiet, PageSize) {
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			for _, k := range page {
				k.run.Checked = at
				if err := tx.SetChecked(k.run); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("record cross-check: %w", err)
		}
		for _, k := range page {
			c.Observer.Unchanged(k.run)
		}
	}
	return nil
}
