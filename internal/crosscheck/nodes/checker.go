package nodes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Checker compares nodes with HTCondor. Set its fields before its first use.
type Checker struct {
	crosscheck.Driver[crosscheck.Observer]
	// Accounts returns the Owners that the jobs of a target may have.
	Accounts func(ctx context.Context, t backend.Target) ([]string, error)
	// Started returns when a target's schedd had been started, 0 if that is not known.
	Started func(t backend.Target) int64
	// Daemon returns what a target's schedd was last known to be.
	Daemon func(t backend.Target) schedd.Daemon

	owners owners

	mu       sync.Mutex
	compared map[backend.Target]map[key][]string // see mark; all ads of their nodes could be read
	before   map[key]crosscheck.Mark             // see mark
	// when an ended DAG was first compared and some of its nodes never had a job, as far as anybody has seen
	missed map[key]time.Time
}

// Crosscheck makes one pass over the DAGs with nodes of which HTCondor has not confirmed the end: it compares them with
// the queues, and what the queues do not show with the histories. It is best made after that of the DAGs' own jobs.
func (c *Checker) Crosscheck(ctx context.Context) error {
	return errors.Join(c.Each(ctx, crosscheck.Crosschecking, c.open, c.through), c.lookForLost(ctx))
}

// through makes one pass over a target.
func (c *Checker) through(ctx context.Context, id schedd.Identity, g backend.Group) error {
	began := c.Now()
	newest, err := c.Newest(ctx, id, true)
	if err != nil {
		return err
	}
	l := &look{Look: crosscheck.Look{History: true, Newest: newest}, target: g.Target}
	answered, err := c.pass(ctx, id, g, l, began)
	if !answered {
		return err
	}
	if l.missing.Jobs == 0 {
		c.Observer.Missing(g.Target, l.missing)
	}
	c.setMark(g, crosscheck.Mark{Newest: newest, At: began}, l)
	return err
}

// Refresh asks only the queues, to learn what was sent, is idle, running or held between two cross-checks. It concludes
// nothing from a job's absence.
func (c *Checker) Refresh(ctx context.Context) error {
	refresh := func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		_, err := c.pass(ctx, id, g, &look{}, c.Now())
		return err
	}
	return c.Each(ctx, crosscheck.Refreshing, c.open, refresh)
}

// pass asks what has changed since the latest passes about the DAGs that these covered, and about everything else. A
// DAG with which something could not be done counts as unread: the others are covered all the same.
func (c *Checker) pass(
	ctx context.Context,
	id schedd.Identity,
	g backend.Group,
	l *look,
	began time.Time,
) (answered bool, err error) {
	coverage := c.Coverage(g.Target)
	l.since = c.mark(g.Target, g.Runs)
	now, _, answered, err := c.Pass(&l.Look, g, coverage, began, c.Started(g.Target),
		l.since.suffices,
		func(runs []ledger.Run) (bool, error) { return c.checkRecent(ctx, id, runs, l) },
		func(runs []ledger.Run) (bool, error) { return c.check(ctx, id, runs, l) })
	if !answered {
		return false, err
	}
	c.uncover(g.Target, l.failed)
	c.Cover(g.Target, now)
	return true, err
}

// Check is Crosscheck for one group of DAGs, as they are in the ledger now: whether one has ended may have just been
// learned.
func (c *Checker) Check(ctx context.Context, g backend.Group) error {
	var runs []ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, run := range g.Runs {
			run, err := tx.Run(run.UID, run.Attempt)
			switch {
			case errors.Is(err, ledger.ErrNotFound): // deleted meanwhile
			case err != nil:
				return err
			default:
				runs = append(runs, run)
			}
		}
		return nil
	})
	if err != nil || len(runs) == 0 {
		return err
	}
	id, err := c.As(ctx, g.Target)
	if err != nil {
		return err
	}
	l := &look{Look: crosscheck.Look{History: true}, target: g.Target, since: c.mark(g.Target, runs)}
	l.Ask = func() schedd.Daemon {
		if d, err := c.Schedd.Daemon(ctx, id); err == nil {
			return d
		}
		return c.Daemon(g.Target)
	}
	_, err = c.check(ctx, id, runs, l)
	return errors.Join(err, l.unowned)
}

// open returns the DAGs with nodes whose ends HTCondor has not confirmed.
func (c *Checker) open(tx *ledger.Tx) ([]ledger.Run, error) {
	runs, err := tx.OpenDAGs()
	if err == nil {
		c.forget(runs)
	}
	return runs, err
}

// check asks the queue, and if requested the history, about all nodes of DAGs and applies the answers. What cannot be
// done about one DAG does not keep the others from being checked.
func (c *Checker) check(ctx context.Context, id schedd.Identity, all []ledger.Run, l *look) (answered bool, err error) {
	all = c.owned(ctx, all, l)
	sizes, err := c.sizes(ctx, all)
	if err != nil {
		return false, err
	}
	return crosscheck.InParts(parts(all, sizes), func(runs []ledger.Run) (bool, error) {
		return c.checkPart(ctx, id, runs, questions(runs, sizes), l)
	})
}

// sizes counts the nodes of DAGs.
func (c *Checker) sizes(ctx context.Context, runs []ledger.Run) (map[key]size, error) {
	all := make(map[key]size, len(runs))
	for some := range slices.Chunk(runs, pagesAtOnce) {
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
			for _, run := range some {
				counts, err := tx.NodeCounts(run.UID, run.Attempt)
				if err != nil {
					return err
				}
				var of size
				for _, step := range counts {
					of.open, of.total = of.open+step.Active, of.total+step.Total()
					of.shown += step.Idle + step.Running + step.Held
				}
				all[keyOf(run)] = of
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *Checker) checkPart(
	ctx context.Context,
	id schedd.Identity,
	runs []ledger.Run,
	questions []condor.Constraint,
	l *look,
) (answered bool, err error) {
	at := c.Now()
	all, err := c.readRows(ctx, runs, l, false)
	if err != nil {
		return false, err
	}
	defer c.tellRepaired(all)
	hear := func(queued bool) func(condor.Job) error {
		return func(j condor.Job) error {
			if queued {
				l.Hear(j)
			}
			if err := all.hear(j, queued, at); err != nil {
				return err
			}
			c.relieve(ctx, all.of(j), at)
			return nil
		}
	}
	if err := c.QueryEach(ctx, id, questions, schedd.Query{Nodes: true}, hear(true)); err != nil {
		return false, err
	}
	if l.History {
		if err := c.askHistory(ctx, id, all, runs, l.since, hear(false)); err != nil {
			return false, err
		}
	}
	return true, c.apply(ctx, all, runs, l, at)
}

// apply writes what was heard, and what was not, about DAGs.
func (c *Checker) apply(ctx context.Context, all comparisons, runs []ledger.Run, l *look, at time.Time) error {
	if l.History {
		if err := c.doubt(ctx, all, l, at); err != nil {
			return err
		}
	}
	var errs []error
	for _, run := range runs {
		k := all[keyOf(run)]
		c.Observer.Unread(run, k.unread)
		err := c.applyTo(ctx, k, l, at)
		if err != nil || len(k.unread) > 0 {
			l.noteUnread(run)
		}
		if err != nil {
			l.failed, errs = append(l.failed, keyOf(run)), append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *Checker) applyTo(ctx context.Context, k *comparison, l *look, at time.Time) error {
	if k.failed != nil {
		return k.failed
	}
	if err := c.write(ctx, k, l.History, at); err != nil {
		return err
	}
	if l.History && k.ended() && k.waits() && len(k.unread) == 0 {
		return c.conclude(ctx, k.dag, at)
	}
	return nil
}

// missedBefore reports whether nodes of which this answer, the first of an ended DAG perhaps, showed no job will never
// have one. If DAGMan ran to its end, it waited for all of its jobs; otherwise HTCondor is still removing them.
func (c *Checker) missedBefore(d dag, at time.Time) bool {
	if d.ran() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missed == nil {
		c.missed = map[key]time.Time{}
	}
	first, again := c.missed[keyOf(d.run)]
	if !again {
		c.missed[keyOf(d.run)] = at
	}
	return again && at.Sub(first) >= crosscheck.LostAfter
}

// forget drops what is remembered of DAGs that are settled.
func (c *Checker) forget(open []ledger.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	are := make(map[key]bool, len(open))
	for _, run := range open {
		are[keyOf(run)] = true
	}
	maps.DeleteFunc(c.missed, func(k key, _ time.Time) bool { return !are[k] })
	maps.DeleteFunc(c.before, func(k key, _ crosscheck.Mark) bool { return !are[k] })
}

// mark returns that of a target, for some DAGs.
func (c *Checker) mark(t backend.Target, runs []ledger.Run) mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest, before := c.Mark(t), make(map[key]crosscheck.Mark, len(runs))
	for _, run := range runs {
		m, known := c.before[keyOf(run)]
		if !known && latest.Newest != "" && run.Submitted.After(latest.At) {
			if c.before == nil {
				c.before = map[key]crosscheck.Mark{}
			}
			m, known = latest, true
			c.before[keyOf(run)] = m
		}
		if known {
			before[keyOf(run)] = m
		}
	}
	return mark{latest, c.compared[t], before}
}

// uncover has everything asked about these DAGs until they have been compared again.
func (c *Checker) uncover(t backend.Target, failed []key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(failed) == 0 || c.compared[t] == nil {
		return
	}
	c.compared[t] = maps.Clone(c.compared[t]) // another pass may read it
	for _, k := range failed {
		delete(c.compared[t], k)
	}
}

func (c *Checker) setMark(g backend.Group, m crosscheck.Mark, l *look) {
	compared := make(map[key][]string, len(g.Runs))
	for _, run := range g.Runs {
		if !l.unread[keyOf(run)] {
			compared[keyOf(run)] = l.accounts[keyOf(run)]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compared == nil {
		c.compared = map[backend.Target]map[key][]string{}
	}
	c.compared[g.Target] = compared
	c.SetMark(g.Target, m)
}
