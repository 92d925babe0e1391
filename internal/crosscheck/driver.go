package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Schedd is the part of HTCondor that is asked.
type Schedd interface {
	Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error
	Daemon(ctx context.Context, id schedd.Identity) (schedd.Daemon, error)
}

// Ledger records runs, procs and nodes.
type Ledger = ledger.Store

// Observer receives the results of passes. Its methods are called by several goroutines.
type Observer interface {
	// Passed: a pass over what is at a target has ended.
	Passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error)
	// Changed: rows of a run were changed. More may follow.
	Changed(run ledger.Run)
	// Unread: the ads of these jobs of a run (possibly none) cannot be fetched or read.
	Unread(run ledger.Run, jobs []string)
	// Repaired: all that a pass has repaired alike in a run.
	Repaired(run ledger.Run, repaired Alike)
	// Used: jobs of a run, whose ends HTCondor has told, had the cores that they had asked for so long, in seconds of
	// one core.
	Used(run ledger.Run, coreSeconds int64)
	// Missing: so many open jobs of a target are missing, and not called lost yet; possibly none.
	Missing(t backend.Target, m Missing)
}

// Driver makes passes over runs, whose jobs or whose nodes somebody compares. Set its fields before its first use.
type Driver[O Observer] struct {
	Ledger Ledger
	Schedd Schedd
	// As returns the identity, with its endpoint, used to ask about a target's runs.
	As       func(ctx context.Context, t backend.Target) (schedd.Identity, error)
	Now      func() time.Time
	Observer O
	// Whole is how often a pass asks about everything, not only about what has changed; 0: always.
	Whole time.Duration

	Gate
}

// Each makes a pass over the runs that which returns. It asks about all groups at once, so that none waits for
// another's schedd.
func (d *Driver[O]) Each(
	ctx context.Context,
	kind string,
	which func(*ledger.Tx) ([]ledger.Run, error),
	ask func(context.Context, schedd.Identity, backend.Group) error,
) error {
	runs, err := ledger.Get(ctx, d.Ledger, which)
	if err != nil {
		return err
	}
	groups := backend.Groups(runs)
	errs := make([]error, len(groups))
	var asking sync.WaitGroup
	for i, group := range groups {
		end, may := d.begin(kind, group.Target, d.Now)
		if !may {
			continue
		}
		asking.Go(func() {
			defer end()
			began := d.Now()
			id, err := d.As(ctx, group.Target)
			if err == nil {
				err = ask(ctx, id, group)
			}
			if ctx.Err() == nil { // otherwise htcd cancelled it
				d.Observer.Passed(kind, group.Endpoint, d.Now().Sub(began), err)
			}
			if err != nil {
				errs[i] = fmt.Errorf("schedd %s: %w", group.Endpoint, err)
			}
		})
	}
	asking.Wait()
	return errors.Join(errs...)
}

// InOrder compares all groups of runs, one after another, and adds up how many jobs were compared.
func (d *Driver[O]) InOrder(
	ctx context.Context,
	runs []ledger.Run,
	compare func(schedd.Identity, backend.Group) (jobs int, err error),
) (jobs int, err error) {
	for _, g := range backend.Groups(runs) {
		id, failed := d.As(ctx, g.Target)
		if failed == nil {
			var n int
			n, failed = compare(id, g)
			jobs += n
		}
		err = errors.Join(err, failed)
	}
	return jobs, err
}

// Pass asks what has changed since the latest passes about those runs of a group that these covered, and about
// everything of the rest, which it returns with what is established then; coverage is what they had established. If too
// much has changed, or nobody can say what has, it asks about everything of all.
func (d *Driver[O]) Pass(
	l *Look,
	g backend.Group,
	coverage Coverage,
	began time.Time,
	started int64,
	covered func(ledger.Run) bool,
	recent, whole func([]ledger.Run) (answered bool, err error),
) (now Coverage, rest []ledger.Run, answered bool, err error) {
	period, may := coverage.Recent(began, started, d.Whole)
	rest = g.Runs
	if may = may && !d.Mark(g.Target).At.IsZero(); may {
		var some []ledger.Run
		l.Period, rest = period, nil
		for _, run := range g.Runs {
			if covered(run) {
				some = append(some, run)
			} else {
				rest = append(rest, run)
			}
		}
		if len(some) > 0 {
			answered, err = recent(some)
			switch {
			case errors.Is(err, schedd.ErrTooMany):
				may, rest, err = false, g.Runs, nil
			case !answered:
				return now, nil, false, err
			}
		}
	}
	if !may {
		l.Clock = 0
	}
	answered, others := whole(rest)
	return coverage.Next(began, l.Clock, started, !may), rest, answered, errors.Join(err, others)
}

// InParts compares runs part by part until one is not answered. What cannot be done about one part does not keep the
// others from being compared.
func InParts(
	parts [][]ledger.Run, compare func([]ledger.Run) (answered bool, err error),
) (answered bool, err error) {
	for _, some := range parts {
		answered, failed := compare(some)
		if err = errors.Join(err, failed); !answered {
			return false, err
		}
	}
	return true, err
}

// Query asks the queue, or the history, for jobs.
func (d *Driver[O]) Query(ctx context.Context, id schedd.Identity, q schedd.Query, hear condor.JobFunc) error {
	err := d.Schedd.Query(ctx, id, q, hear)
	switch {
	case err == nil:
		return nil
	case q.Left != nil:
		return fmt.Errorf("cross-check history: %w", err)
	}
	return fmt.Errorf("cross-check queue: %w", err)
}

// QueryEach is Query with one constraint after another.
func (d *Driver[O]) QueryEach(
	ctx context.Context, id schedd.Identity, all []condor.Constraint, q schedd.Query, hear condor.JobFunc,
) error {
	for _, q.Where = range all {
		if err := d.Query(ctx, id, q, hear); err != nil {
			return err
		}
	}
	return nil
}

// Newest returns the id of the job that entered a history last, that of nodes or the other one; "" if none ever did.
func (d *Driver[O]) Newest(ctx context.Context, id schedd.Identity, nodes bool) (newest string, err error) {
	last := schedd.Query{Where: condor.Any, Nodes: nodes, Left: &schedd.HistoryBounds{Limit: 1}}
	err = d.Query(ctx, id, last, func(j condor.Job) error {
		newest = j.ID()
		return nil
	})
	return newest, err
}
