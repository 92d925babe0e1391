package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Reconcile compares the nodes of DAGs with the schedds, including those of which HTCondor has confirmed the end, as
// far as queue or history still know them. It reports every difference in order and repairs the ledger unless dry is
// set. checked is the number of nodes compared.
func (c *Checker) Reconcile(
	ctx context.Context,
	runs []ledger.Run,
	dry bool,
	found func(crosscheck.Difference),
) (checked int, err error) {
	return c.InOrder(ctx, runs, func(id schedd.Identity, g backend.Group) (int, error) {
		return c.reconcileGroup(ctx, id, g, dry, found)
	})
}

func (c *Checker) reconcileGroup(
	ctx context.Context,
	id schedd.Identity,
	g backend.Group,
	dry bool,
	found func(crosscheck.Difference),
) (checked int, err error) {
	l := &look{target: g.Target}
	g.Runs = c.owned(ctx, g.Runs, l)
	sizes, err := c.sizes(ctx, g.Runs)
	if err != nil {
		return 0, err
	}
	for k, of := range sizes {
		sizes[k] = size{open: of.total, total: of.total}
	}
	_, err = crosscheck.InParts(parts(g.Runs, sizes), func(runs []ledger.Run) (bool, error) {
		answered, err := c.reconcilePart(ctx, id, runs, questions(runs, sizes), l, dry, found)
		if answered {
			for _, run := range runs {
				checked += sizes[keyOf(run)].total
			}
		}
		return answered, err
	})
	return checked, errors.Join(err, l.unowned)
}

func (c *Checker) reconcilePart(
	ctx context.Context,
	id schedd.Identity,
	runs []ledger.Run,
	questions []condor.Constraint,
	l *look,
	dry bool,
	found func(crosscheck.Difference),
) (answered bool, err error) {
	at := c.Now()
	all, err := c.readRows(ctx, runs, l, true)
	if err != nil {
		return false, err
	}
	defer c.tellRepaired(all)
	if err := c.QueryEach(ctx, id, questions, schedd.Query{Nodes: true}, all.hearer(true, at)); err != nil {
		return false, err
	}
	if err := c.askHistory(ctx, id, all, runs, mark{}, all.hearer(false, at)); err != nil {
		return false, err
	}
	if err := c.doubt(ctx, all, l, at); err != nil {
		return false, err
	}
	var errs []error
	for _, run := range runs {
		k := all[keyOf(run)]
		c.Observer.Unread(run, k.unread)
		errs = append(errs, c.reconcileOne(ctx, k, at, dry, found))
	}
	return true, errors.Join(errs...)
}

func (c *Checker) reconcileOne(
	ctx context.Context,
	k *comparison,
	at time.Time,
	dry bool,
	found func(crosscheck.Difference),
) error {
	if err := c.tell(ctx, k, at, dry, found); err != nil || dry {
		return err
	}
	return c.write(ctx, k, true, at)
}

// tell reports how the rows of a DAG differ from what HTCondor says.
func (c *Checker) tell(
	ctx context.Context,
	k *comparison,
	at time.Time,
	dry bool,
	found func(crosscheck.Difference),
) error {
	return k.eachTold(true, func(page []int, absent map[int]bool) error {
		changes, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]change, error) {
			return k.changes(tx, page, absent, at)
		})
		if errors.Is(err, ledger.ErrNotFound) {
			return nil // deleted meanwhile
		}
		for _, ch := range changes {
			if d, differs := k.difference(ch, absent[ch.was.Number]); differs {
				d.Repaired = d.Repaired && !dry
				found(d)
			}
		}
		return err
	})
}

// difference describes a change for humans; those that say nothing new to them are left out.
func (k *comparison) difference(ch change, absent bool) (d crosscheck.Difference, differs bool) {
	d = crosscheck.Difference{
		Namespace: k.run.Namespace,
		Name:      k.run.Name,
		JobID:     ch.is.JobID(),
		Was:       stateOf(ch.was),
		Is:        stateOf(ch.is),
		Evidence:  crosscheck.NoTrace,
		Repaired:  true,
	}
	switch words := k.heard[ch.was.Number]; {
	case absent && ch.is.Status == ledger.StatusOpen:
		d.Is, d.Evidence, d.Repaired = "Absent", crosscheck.NotYetLost, false
	case !absent && len(words) > 0:
		d.Evidence = words[len(words)-1].evidence
	}
	d.Evidence = fmt.Sprintf("node %d of DAG %d (%s): %s", ch.was.Number, k.run.Attempt, ch.was.StepName, d.Evidence)
	return d, d.Was != d.Is && !crosscheck.BecameIdle(ch.was.Proc, ch.is.Proc)
}

// stateOf returns what a row says about its node.
func stateOf(n ledger.Node) string {
	switch {
	case n.Waiting():
		return "Waiting"
	case n.Status == ledger.StatusFutile:
		return fmt.Sprintf("Futile (%s)", n.Reason)
	}
	return crosscheck.Word(n.Proc)
}

func evidence(j condor.Job, queued bool) string {
	if queued {
		return crosscheck.Evidence("condor_q", j)
	}
	return crosscheck.Evidence("condor_history", j)
}
