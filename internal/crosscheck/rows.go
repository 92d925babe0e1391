package crosscheck

import (
	"context"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// PageSize is the maximum number of rows per transaction, so that callbacks do not wait long.
const PageSize = 1000

// readRows reads the procs to ask about: those HTCondor has not yet confirmed, or in a full comparison all.
func (c *Checker) readRows(ctx context.Context, runs []ledger.Run, all comparisons) error {
	// For each run the unchanged rows are read first, then the others.
	cursor := struct {
		run       int
		unchanged bool
		from      int
	}{unchanged: true}
	for cursor.run < len(runs) {
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
			for left := PageSize; left > 0 && cursor.run < len(runs); {
				k := all[keyOf(runs[cursor.run])]
				if k.full() {
					cursor.unchanged = false
				}
				read, next, err := k.readPage(tx, cursor.unchanged, cursor.from, left)
				if err != nil {
					return err
				}
				switch {
				case read == left: // there may be more of them
					cursor.from = next
				case cursor.unchanged:
					cursor.unchanged, cursor.from = false, 0
				default:
					cursor.run, cursor.unchanged, cursor.from = cursor.run+1, true, 0
				}
				left -= max(read, 10) // a query has a cost too
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readPage adds a page of the run's procs, unchanged ones or the others. It returns how many, and where to continue.
func (k *comparison) readPage(tx *ledger.Tx, unchanged bool, from, limit int) (read, next int, err error) {
	if unchanged {
		err := tx.Unchanged(k.run.UID, k.run.Attempt, from, limit, func(proc, jobStatus int) {
			if k.unchanged == nil {
				k.unchanged = make(map[int]condor.JobStatus, min(k.run.Procs, limit))
			}
			read, next = read+1, proc+1
			if proc >= k.made {
				return
			}
			k.unchanged[proc] = condor.JobStatus(jobStatus)
			k.asked++
			k.arrived = k.arrived || jobStatus != 0
		})
		return read, next, err
	}
	filter := ledger.ProcFilter{Unconfirmed: !k.full(), Changed: !k.full(), From: from, Limit: limit}
	if k.scope == calledLost {
		filter.Status, filter.Reason = ledger.StatusFailed, ReasonLost
	}
	page, err := tx.Procs(k.run.UID, k.run.Attempt, filter)
	for _, p := range page {
		next = p.Proc + 1
		k.add(p)
	}
	return len(page), next, err
}

// add has a proc compared.
func (k *comparison) add(p ledger.Proc) {
	if p.Source == ledger.SourceCarried || p.Proc >= k.made { // it is in the cluster of another attempt, or in none
		return
	}
	k.rows[p.Proc] = p
	k.asked++
	k.arrived = k.arrived || p.JobStatus != 0 || p.Status != ledger.StatusOpen
}
