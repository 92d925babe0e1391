package crosscheck

import (
	"context"
	"errors"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Look is one pass over a target.
type Look struct {
	Period  schedd.Period // about which is asked, if not everything
	History bool          // the history is asked, too
	Newest  string        // entry of the history when it began

	Clock int64 // the schedd's, when it began to answer; 0: no ad says so

	// Ask asks what the schedd is; nil: what is known of it is of this pass.
	Ask func() schedd.Daemon
}

// Daemon returns what the schedd is, if need be by asking; known is what is known of it.
func (l *Look) Daemon(known schedd.Daemon) schedd.Daemon {
	if l.Ask == nil {
		return known
	}
	return l.Ask()
}

// Hear learns the schedd's clock from an ad.
func (l *Look) Hear(j condor.Job) {
	if l.Clock == 0 || j.ServerTime < l.Clock {
		l.Clock = j.ServerTime
	}
}

// look is one over runs.
type look struct {
	Look
	target  backend.Target
	mark    Mark            // of the latest cross-check
	unread  map[runKey]bool // runs with jobs whose ads cannot be read, or with which something else could not be done
	missing Missing
	absent  []ledger.Run // with jobs that a mirror does not show
	made    made
}

// checkRecent compares runs, all of whose jobs earlier passes have compared, with what has changed since. It asks
//
//  1. the queue for jobs that entered their state in the period,
//  2. the queue for unsettled procs that the first answer did not show, by name: what the ledger says of them depends
//     on time, or is not HTCondor's word,
//  3. the history for jobs that have left the queue since the latest cross-check.
//
// Any other proc is as its row says. If too much has changed, nothing is recorded, and the error is schedd.ErrTooMany.
func (c *Checker) checkRecent(
	ctx context.Context,
	id schedd.Identity,
	runs []ledger.Run,
	l *look,
) (answered bool, err error) {
	at := c.Now()
	all := newComparisons(runs, unconfirmed, l.made)
	var clusters []int
	for _, k := range all {
		k.recent, k.present = true, true
		clusters = append(clusters, k.run.Cluster)
	}
	these := constraint(clusters)
	if err := c.readUnsettled(ctx, all); err != nil {
		return false, err
	}
	seen := map[procKey]bool{}
	shown, err := c.askChanged(ctx, id, all, these, l)
	if err != nil {
		return false, err
	}
	if err := c.takeShown(ctx, all, shown, "condor_q", at, seen); err != nil {
		return false, err
	}
	if err := c.askNamed(ctx, id, all, l, at); err != nil {
		return false, err
	}
	if l.History {
		if err := c.askLeft(ctx, id, all, these, l, at, seen); err != nil {
			return false, err
		}
	}
	return true, c.conclude(ctx, runs, all, at, l)
}

// procKey identifies a proc of a run in a pass.
type procKey struct {
	runKey
	number int
}

// askChanged returns the jobs that entered their state in the period.
func (c *Checker) askChanged(
	ctx context.Context,
	id schedd.Identity,
	all comparisons,
	these condor.Constraint,
	l *look,
) (shown []condor.Job, err error) {
	err = c.Query(ctx, id, schedd.Query{Where: these, Changed: &l.Period}, func(j condor.Job) error {
		l.Hear(j)
		k := all.of(j)
		if k == nil {
			return nil
		}
		if NeedsReason(j) {
			if err := c.readShown(ctx, all, []condor.Job{j}, nil); err != nil {
				return err
			}
			if k.needsReason(j) {
				return schedd.ErrReasons
			}
		}
		shown = append(shown, j)
		return nil
	})
	return shown, err
}

// takeShown compares jobs that were not seen before with their rows.
func (c *Checker) takeShown(
	ctx context.Context,
	all comparisons,
	shown []condor.Job,
	tool string,
	at time.Time,
	seen map[procKey]bool,
) error {
	if err := c.readShown(ctx, all, shown, seen); err != nil {
		return err
	}
	for _, j := range shown {
		if key := (procKey{keyOfJob(j), j.Number()}); !seen[key] {
			seen[key] = true
			all.of(j).take(j, tool, at)
		}
	}
	return nil
}

// maxNamedProcs is how many numbers of procs a question names.
const maxNamedProcs = 1000

// askNamed compares unsettled procs that were not among the changed jobs with the queue. Between cross-checks those are
// left out that may have left it.
func (c *Checker) askNamed(ctx context.Context, id schedd.Identity, all comparisons, l *look, at time.Time) error {
	var runs []ledger.Run
	var procs []int
	for _, k := range all {
		named := len(procs)
		for _, p := range k.rows {
			if l.History || p.Status == ledger.StatusOpen && p.Absent == 0 {
				_, proc := p.Place()
				procs = append(procs, proc)
			}
		}
		if len(procs) > named {
			runs = append(runs, k.run)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	slices.Sort(procs)
	procs = slices.Compact(procs)
	which := questions(runs)
	for i, some := range which {
		if len(procs) <= maxNamedProcs {
			which[i] = some.And(condor.Procs(procs))
		}
	}
	return c.QueryEach(ctx, id, which, schedd.Query{}, all.hearer("condor_q", at, nil))
}

// askLeft compares the rows with the jobs that left the queue since the latest cross-check, and what was asked by name
// with the rest of the history where it may have left before.
func (c *Checker) askLeft(
	ctx context.Context,
	id schedd.Identity,
	all comparisons,
	these condor.Constraint,
	l *look,
	at time.Time,
	seen map[procKey]bool,
) error {
	if l.Newest != l.mark.Newest {
		var left []condor.Job
		never := func() bool { return false } // whatever has left is new
		bounds := schedd.HistoryBounds{Since: l.mark.Newest, Limit: changesAtOnce + 1, Enough: never}
		err := c.Query(ctx, id, schedd.Query{Where: these, Left: &bounds}, func(j condor.Job) error {
			if all.of(j) == nil {
				return nil
			}
			if left = append(left, j); len(left) > changesAtOnce {
				return schedd.ErrTooMany
			}
			return nil
		})
		if err == nil {
			err = c.takeShown(ctx, all, left, "condor_history", at, seen)
		}
		if err != nil {
			return err
		}
	}
	for _, k := range all {
		if k.unseen() > 0 && !k.sinceMark(l.mark) {
			return c.askHistory(ctx, id, all, l.mark, at, nil)
		}
	}
	return nil
}

// readUnsettled reads the rows of unsettled procs.
func (c *Checker) readUnsettled(ctx context.Context, all comparisons) error {
	rows, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Proc, error) {
		return tx.Unsettled(c.Kind, changesAtOnce+1)
	})
	if err != nil {
		return err
	}
	if len(rows) > changesAtOnce {
		return schedd.ErrTooMany
	}
	for _, p := range rows {
		if k := all[runKey{p.Cluster, p.UID, p.Attempt}]; k != nil {
			k.add(p)
		}
	}
	return nil
}

// readShown reads the unconfirmed rows of jobs that are not yet known.
func (c *Checker) readShown(ctx context.Context, all comparisons, shown []condor.Job, seen map[procKey]bool) error {
	for page := range slices.Chunk(shown, PageSize) {
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
			for _, j := range page {
				k := all.of(j)
				if _, known := k.rows[j.Number()]; known || seen[procKey{keyOfJob(j), j.Number()}] {
					continue
				}
				p, err := tx.Proc(k.run.UID, k.run.Attempt, j.Number())
				switch {
				case errors.Is(err, ledger.ErrNotFound):
				case err != nil:
					return err
				case p.Status == ledger.StatusOpen || p.Source == FromCallback:
					k.add(p)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
