package crosscheck

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// Change is one row before and after.
type Change struct{ Was, Is ledger.Proc }

// Extent is how far HTCondor was asked about a run.
type Extent int

// Extents.
const (
	InFull  Extent = iota // queue and history, about all of its procs
	InQueue               // only the queue, about all
	OfSome                // about some
)

// Observe applies observations of one run's procs in the caller's transaction and settles the run. It returns the run
// as it is then, and the rows that changed.
func Observe(
	tx *ledger.Tx,
	uid string,
	attempt int,
	observed map[int]Observation,
	at time.Time,
	asked Extent,
) (run ledger.Run, changes []Change, err error) {
	rows, err := rowsOf(tx, uid, attempt, slices.Sorted(maps.Keys(observed)))
	if err != nil {
		return run, nil, err
	}
	for _, was := range rows {
		is, changed := observed[was.Proc].Apply(was)
		if !changed {
			continue
		}
		if err := tx.UpdateProc(is); err != nil {
			return run, nil, err
		}
		changes = append(changes, Change{was, is})
	}
	if run, err = tx.Run(uid, attempt); err != nil {
		return run, nil, err
	}
	if run.Kind == ledger.Workflows && slices.ContainsFunc(changes, Change.takesBack) {
		if err := tx.WaitAgain(uid, attempt); err != nil {
			return run, nil, err
		}
	}
	if stop := stopOfChanges(changes); stop != "" && run.Stop == "" && run.State == ledger.Submitted {
		run.Stop, run.Message = stop, StopMessage(stop)
		if err := tx.UpdateRun(run); err != nil {
			return run, nil, err
		}
	}
	run, _, err = settle(tx, run, withTimes(run, observed, at), at, asked)
	return run, changes, err
}

// stopOfChanges returns the stop for which htcd removed one of these jobs, "" if none. A ledger restored from before
// the stop does not know that the run was stopped.
func stopOfChanges(changes []Change) string {
	for _, c := range changes {
		if _, ours := removeReasons[c.Is.Reason]; ours {
			return c.Is.Reason
		}
	}
	return ""
}

// rowsOf reads rows of one run in order; adjacent ones together.
func rowsOf(tx *ledger.Tx, uid string, attempt int, procs []int) (rows []ledger.Proc, err error) {
	if n := len(procs); n > 1 && procs[n-1]-procs[0] < 2*n {
		rows, err = tx.Procs(uid, attempt, ledger.ProcFilter{From: procs[0], Limit: procs[n-1] - procs[0] + 1})
		rows = slices.DeleteFunc(rows, func(p ledger.Proc) bool {
			_, wanted := slices.BinarySearch(procs, p.Proc)
			return !wanted
		})
		if err == nil && len(rows) < n {
			err = fmt.Errorf("procs of run %s attempt %d: %w", uid, attempt, ledger.ErrNotFound)
		}
		return rows, err
	}
	for _, proc := range procs {
		p, err := tx.Proc(uid, attempt, proc)
		if err != nil {
			return nil, err
		}
		rows = append(rows, p)
	}
	return rows, nil
}

// ObserveRow is Observe for one row of a run, both just read in the same transaction. It returns how many of the run's
// procs are open.
func ObserveRow(tx *ledger.Tx, run ledger.Run, was ledger.Proc, o Observation) (open int, err error) {
	if is, changed := o.Apply(was); changed {
		if err := tx.UpdateProc(is); err != nil {
			return 0, err
		}
	}
	_, open, err = settle(tx, run, run, o.at, OfSome)
	return open, err
}

// settle brings the run's own row, which was just read as before and is to become run, into line with its procs. It
// returns it, and how many of these are open.
func settle(
	tx *ledger.Tx,
	before, run ledger.Run,
	at time.Time,
	asked Extent,
) (is ledger.Run, open int, err error) {
	counts, err := tx.Counts(run.UID, run.Attempt)
	if err != nil {
		return run, 0, err
	}
	switch {
	case counts.Active > 0:
		run.Ended = time.Time{}
	case run.Ended.IsZero():
		run.Ended = at
	}
	if asked != OfSome {
		unconfirmed, err := tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Unconfirmed: true, Limit: 1})
		if err != nil {
			return run, 0, err
		}
		if run.Confirmed = len(unconfirmed) == 0 && counts.Waiting == 0; run.Confirmed {
			if run.Usage, err = usageOf(tx, run); err != nil {
				return run, 0, err
			}
		}
		if asked == InFull || run.Confirmed {
			run.Checked = at
		}
	}
	if run.Ended.Equal(before.Ended) && run.Checked.Equal(before.Checked) && run.Confirmed == before.Confirmed &&
		run.Usage == before.Usage &&
		sameTimes(run, before) {
		return run, counts.Active, nil
	}
	return run, counts.Active, tx.UpdateRun(run)
}
