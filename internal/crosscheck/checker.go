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
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Schedd is the part of HTCondor that a Checker asks.
type Schedd interface {
	Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error
	Daemon(ctx context.Context, id schedd.Identity) (schedd.Daemon, error)
}

// Ledger records runs and procs.
type Ledger = ledger.Store

// Observer receives the results of checks. Its methods are called by several goroutines.
type Observer interface {
	// Passed: a pass over the runs of a target has ended.
	Passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error)
	// Changed: rows of a run were changed. More may follow.
	Changed(run ledger.Run)
	// Checked: everything HTCondor said about a run has been applied to it.
	Checked(run ledger.Run)
	// Unchanged: the same, but there was nothing new.
	Unchanged(run ledger.Run)
	// Unread: the ads of these jobs of a run (possibly none) cannot be fetched or read.
	Unread(run ledger.Run, jobs []string)
	// Repaired: all that a pass has repaired alike in a run.
	Repaired(run ledger.Run, repaired Alike)
	// Used: jobs of a run, whose ends HTCondor has told, had the cores that they had asked for so long, in seconds of
	// one core.
	Used(run ledger.Run, coreSeconds int64)
	// Missing: so many open jobs of a target are missing, and not called lost yet; possibly none.
	Missing(t backend.Target, m Missing)
	// Stuck: a cluster was never completely spooled and must be removed.
	Stuck(ctx context.Context, run ledger.Run) error
}

// Checker compares runs with HTCondor. Set its fields before its first use.
type Checker struct {
	Ledger Ledger
	Schedd Schedd
	// As returns the identity, with its endpoint, used to ask about a target's runs.
	As       func(ctx context.Context, t backend.Target) (schedd.Identity, error)
	Now      func() time.Time
	Observer Observer
	Kind     ledger.Kind // of the runs in a pass
	// Whole is how often a pass asks about all jobs, not only about those that have changed; 0: always.
	Whole time.Duration
	// GoesOn is called within the transaction for each job that runs again though its output is here, which is outdated
	// then; nil: there is none.
	GoesOn func(run ledger.Run, proc int) error
	// Mirrors returns what may be asked in the place of a schedd; nil: nothing. The field may be nil.
	Mirrors func(schedd.Endpoint) Mirror

	gate    Gate
	mirrors mirrors
	// absent asks HTCondor itself about runs with jobs that this Checker's mirror does not show; nil: this one asks
	// HTCondor.
	absent func(ctx context.Context, id schedd.Identity, t backend.Target, runs []ledger.Run) error
}

// Crosscheck makes one pass: it compares every run that HTCondor has not yet confirmed with its schedd's queue,
// compares what left the queue with the history, and repairs the ledger. All targets are asked at once, so that none
// waits for another's schedd. Now and then it looks for what was called lost.
func (c *Checker) Crosscheck(ctx context.Context) error {
	return errors.Join(c.each(ctx, Crosschecking, c.whole), c.lookForLost(ctx))
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
	c.gate.SetMark(g.Target, Mark{newest, began})
	return err
}

// Refresh asks only the queues, to learn what is idle, running or held between two cross-checks. It concludes nothing
// from a job's absence.
func (c *Checker) Refresh(ctx context.Context) error {
	return c.each(ctx, Refreshing, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		return c.mirroredOr(id.Endpoint, func(c *Checker) error {
			_, err := c.pass(ctx, id, g, &look{}, c.Now(), c.gate.Coverage(g.Target).Started)
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
	c.gate.change(t, func(k *known) { k.daemon = daemon })
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
	coverage := c.gate.Coverage(g.Target)
	l.mark, l.unread = c.gate.Mark(g.Target), map[RunKey]bool{}
	period, recent := coverage.Recent(began, started, c.Whole)
	recent = recent && !l.mark.At.IsZero()
	whole := g.Runs
	if recent {
		var covered []ledger.Run
		l.Period, whole = period, nil
		for _, run := range g.Runs {
			if coverage.covers(run, l.mark) {
				covered = append(covered, run)
			} else {
				whole = append(whole, run)
			}
		}
		if len(covered) > 0 {
			answered, err = c.checkRecent(ctx, id, covered, l)
			switch {
			case errors.Is(err, schedd.ErrTooMany):
				recent, whole, err = false, g.Runs, nil
			case !answered:
				return false, err
			}
		}
	}
	if !recent {
		l.Clock = 0
	}
	answered, rest := c.checkWhole(ctx, id, whole, l)
	if err = errors.Join(err, rest); !answered {
		return false, err
	}
	now := coverage.Next(began, l.Clock, started, !recent)
	now.unread = l.unread
	if l.History { // a job whose ad cannot be read may be there
		now.read = map[RunKey]bool{}
		for _, run := range whole {
			now.read[KeyOf(run)] = !l.unread[KeyOf(run)]
		}
	}
	c.gate.Cover(g.Target, now)
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
		l := &look{Look: Look{History: true}, target: g.Target, mark: c.gate.Mark(g.Target), made: made}
		l.Ask = func() schedd.Daemon {
			c.started(ctx, id, g.Target)
			return c.gate.Daemon(g.Target)
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
func (c *Checker) NewestKnown(t backend.Target) string { return c.gate.Mark(t.Shared()).Newest }

// Started returns when a target's schedd had been started, as the latest pass has learned it; 0: unknown.
func (c *Checker) Started(t backend.Target) int64 { return c.gate.Coverage(t).Started }

// Daemon returns what a target's schedd was last known to be.
func (c *Checker) Daemon(t backend.Target) schedd.Daemon { return c.gate.Daemon(t) }

// each asks about all groups of unconfirmed runs at once.
func (c *Checker) each(
	ctx context.Context,
	kind string,
	ask func(context.Context, schedd.Identity, backend.Group) error,
) error {
	return c.eachOf(ctx, kind, nil, ask)
}

// eachOf is each for some of the runs; nil: all.
func (c *Checker) eachOf(
	ctx context.Context,
	kind string,
	which func(ledger.Run) bool,
	ask func(context.Context, schedd.Identity, backend.Group) error,
) error {
	var runs []ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.Runs(ledger.RunFilter{Kind: c.Kind, State: ledger.Submitted, Unconfirmed: true})
		return err
	})
	if err != nil {
		return err
	}
	if which != nil {
		runs = slices.DeleteFunc(runs, func(run ledger.Run) bool { return !which(run) })
	}
	return c.gate.Each(ctx, Pass{Kind: kind, Runs: runs, As: c.As, Now: c.Now, Over: c.Observer.Passed}, ask)
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
	var errs []error
	for _, some := range parts(runs) {
		answered, err := c.checkPart(ctx, id, some, l)
		errs = append(errs, err)
		if !answered {
			return false, errors.Join(errs...)
		}
	}
	return true, errors.Join(errs...)
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
		k := all[KeyOf(run)]
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
				l.unread[KeyOf(run)] = true
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
		k := all[KeyOf(run)]
		if errs = append(errs, k.failed); (k.failed != nil || len(k.unread) > 0) && l.unread != nil {
			l.unread[KeyOf(run)] = true
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
	for page := range slices.Chunk(quiet, pageSize) {
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
