package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Schedd is what is asked of HTCondor.
type Schedd interface {
	Queue(ctx context.Context, id schedd.Identity, constraint string, fn func(schedd.Job) error) error
	History(ctx context.Context, id schedd.Identity, constraint string, b schedd.HistoryBounds, fn func(schedd.Job) error) error
}

// Ledger is where runs and procs are remembered.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Observer hears what comes of a check. Its methods are called by several goroutines.
type Observer interface {
	// Passed: one pass over the runs of a target has ended.
	Passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error)
	// Changed: rows of a run were changed. More of them may follow.
	Changed(run ledger.Run)
	// Checked: all that HTCondor had to say of a run was dealt with.
	Checked(run ledger.Run)
	// Unchanged: the same, and there was nothing new.
	Unchanged(run ledger.Run)
	// Unread: the ads of these jobs of a run, perhaps none, cannot be had or read.
	Unread(run ledger.Run, jobs []string)
	// Repaired: something was put right; what the change was where it was one of a row.
	Repaired(run ledger.Run, kind Repair, change Change)
	// Stuck: a cluster was never completely spooled, and is to be removed.
	Stuck(ctx context.Context, run ledger.Run) error
}

// Checker compares runs with HTCondor. Its fields are set before its first use.
type Checker struct {
	Ledger Ledger
	Schedd Schedd
	// As returns as whom, and where, the runs of a target are asked about.
	As       func(ctx context.Context, t backend.Target) (schedd.Identity, error)
	Now      func() time.Time
	Observer Observer

	gate gate
}

// Crosscheck is one pass: it compares every run on which HTCondor has not said the last word with its schedd's queue,
// and what left the queue with the history, and repairs the ledger. All targets are asked at once, so that none waits for
// another's schedd.
func (c *Checker) Crosscheck(ctx context.Context) error {
	return c.each(ctx, crosschecking, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		began := c.Now()
		newest, err := c.NewestHistory(ctx, id)
		if err != nil {
			return err
		}
		if err := c.check(ctx, id, g, true); err != nil {
			return err
		}
		c.gate.setMark(g.Target, mark{newest, began})
		return nil
	})
}

// Refresh asks the queues alone, so that what is idle, running or held is known between two cross-checks. It concludes
// nothing from a job's absence.
func (c *Checker) Refresh(ctx context.Context) error {
	return c.each(ctx, refreshing, func(ctx context.Context, id schedd.Identity, g backend.Group) error {
		return c.check(ctx, id, g, false)
	})
}

// Check is Crosscheck for one group of runs.
func (c *Checker) Check(ctx context.Context, g backend.Group) error {
	id, err := c.As(ctx, g.Target)
	if err != nil {
		return err
	}
	return c.check(ctx, id, g, true)
}

// NewestKnown returns the job that had left the queue of a target last when the newest cross-check began, "" when not known.
func (c *Checker) NewestKnown(t backend.Target) string { return c.gate.mark(t.Shared()).newest }

// each asks about all groups of the unconfirmed runs at once.
func (c *Checker) each(ctx context.Context, kind string, ask func(context.Context, schedd.Identity, backend.Group) error) error {
	var runs []ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.Runs(ledger.RunFilter{State: ledger.Submitted, Unconfirmed: true})
		return err
	})
	if err != nil {
		return err
	}
	groups := backend.Groups(runs)
	errs := make([]error, len(groups))
	var asking sync.WaitGroup
	for i, g := range groups {
		end, may := c.gate.begin(kind, g.Target, c.Now)
		if !may {
			continue
		}
		asking.Go(func() {
			defer end()
			began := c.Now()
			id, err := c.As(ctx, g.Target)
			if err == nil {
				err = ask(ctx, id, g)
			}
			if ctx.Err() == nil { // else it was htcd that broke it off
				c.Observer.Passed(kind, g.Endpoint, c.Now().Sub(began), err)
			}
			if err != nil {
				errs[i] = fmt.Errorf("schedd %s: %w", g.Endpoint, err)
			}
		})
	}
	asking.Wait()
	return errors.Join(errs...)
}

// atOnce is how many runs are written at once: they share the ledger's commits.
const atOnce = 64

// check asks queue, then history if that is wanted, about runs, and applies what they say: a part of them after the other, so
// that its memory does not grow with the queue.
func (c *Checker) check(ctx context.Context, id schedd.Identity, g backend.Group, history bool) error {
	since := c.gate.mark(g.Target)
	for _, some := range parts(g.Runs) {
		if err := c.checkPart(ctx, id, some, history, since); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checker) checkPart(ctx context.Context, id schedd.Identity, runs []ledger.Run, history bool, since mark) error {
	at := c.Now()
	all, err := c.askQueue(ctx, id, runs, false, at)
	if err != nil {
		return err
	}
	if history {
		// What the history shows holds whatever comes after it, and is written while the schedd reads on.
		var writing errgroup.Group
		writing.SetLimit(atOnce)
		err := c.askHistory(ctx, id, all, since, at, func(k *comparison) {
			if k.unseen() == 0 && !k.applied && !k.quiet() && !k.stuck {
				k.applied = true
				k.judgeUnstaged()
				writing.Go(func() error { return c.write(ctx, k, at) })
			}
		})
		err = errors.Join(err, writing.Wait())
		for _, k := range all {
			if k.applied { // statuses come after it: they would take the CPU that the schedd needs to answer
				c.Observer.Checked(k.run)
			}
		}
		if err != nil {
			return err
		}
	}
	return c.conclude(ctx, runs, all, at, history)
}

// conclude applies what was found about runs and is not written yet.
func (c *Checker) conclude(ctx context.Context, runs []ledger.Run, all comparisons, at time.Time, history bool) error {
	var quiet []*comparison
	var writing errgroup.Group
	writing.SetLimit(atOnce)
	for _, run := range runs {
		k := all[KeyOf(run)]
		c.Observer.Unread(k.run, k.unread)
		if k.applied {
			continue
		}
		if k.stuck {
			if err := c.Observer.Stuck(ctx, run); err != nil {
				return errors.Join(fmt.Errorf("remove cluster %d: %w", run.Cluster, err), writing.Wait())
			}
		}
		if history {
			k.miss(at)
		}
		if history || k.unseen() == 0 { // else the others may be in the history
			k.judgeUnstaged()
		}
		if k.quiet() {
			quiet = append(quiet, k)
			continue
		}
		writing.Go(func() error {
			defer c.Observer.Checked(k.run)
			return c.write(ctx, k, at)
		})
	}
	return errors.Join(writing.Wait(), c.writeQuiet(ctx, quiet, at, history))
}

// BetweenChecks is how often it is recorded, in the ledger and in the status, that HTCondor was asked and had nothing
// new. A cross-check is recorded in the ledger every time, since the history is read from there on.
const BetweenChecks = 50 * time.Second

// writeQuiet records that HTCondor was asked about runs of which nothing has changed.
func (c *Checker) writeQuiet(ctx context.Context, quiet []*comparison, at time.Time, history bool) error {
	quiet = slices.DeleteFunc(quiet, func(k *comparison) bool { return !history && at.Sub(k.run.Checked) < BetweenChecks })
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
