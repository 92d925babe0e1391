package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"math"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// made says how many procs the factories that are there of runs have made.
type made map[RunKey]int

// of returns the number from which procs of a run are not there yet. Without a factory, and when that is gone, all are
// there, or were.
func (m made) of(run ledger.Run) int {
	n, known := m[KeyOf(run)]
	if !known {
		return math.MaxInt
	}
	if run.Sent == "" {
		return n
	}
	numbers, err := run.Numbers()
	if number, more := numbers.At(n); err == nil && more {
		return number
	}
	return math.MaxInt
}

// unseen is how many jobs a factory that has gone may have made since it was asked last: those that wait at once, and
// as many that did.
const unseen = 2 * submit.IdleAtOnce

// addMade asks for the factories of runs, before the queue is asked for their jobs, and adds the rows of those that
// were made. When a factory has gone before it had made all, because somebody removed it, the next ones get rows, too,
// and are missing like jobs of which there is no trace: once they are lost, so are all others.
func (c *Checker) addMade(ctx context.Context, id schedd.Identity, runs []ledger.Run) (made, error) {
	var asked []ledger.Run
	var clusters []int
	for _, run := range runs {
		if run.Factory > 0 && !run.Confirmed && run.Kind != ledger.Workflows { // nodes have rows from the beginning
			asked, clusters = append(asked, run), append(clusters, run.Cluster)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	all, paused := made{}, map[RunKey]string{}
	err := c.Schedd.Factories(ctx, id, constraint(clusters), func(f schedd.Factory) error {
		key := RunKey{f.Cluster, f.Tag.UID, f.Tag.Attempt}
		all[key], paused[key] = f.Next, f.Paused
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for factories: %w", err)
	}
	for _, run := range asked {
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			n, there := all[KeyOf(run)]
			if why := paused[KeyOf(run)]; run.Stop == "" && why != run.Paused() {
				now, err := tx.Run(run.UID, run.Attempt)
				if err == nil && now.Stop == "" {
					err = tx.UpdateRun(now.PausedFor(why))
				}
				if err != nil {
					return err
				}
			}
			switch {
			case !there:
				return tx.AddGone(run, unseen)
			case run.Unmade > 0 && run.Stop == "": // the schedd had lost it for a while
				if err := tx.MakeAgain(run); err != nil {
					return err
				}
			}
			return tx.AddMade(run, n)
		})
		if err != nil && !errors.Is(err, ledger.ErrNotFound) { // it may have been deleted since
			return nil, fmt.Errorf("record jobs that were made: %w", err)
		}
	}
	return all, nil
}
