package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"math"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// made says how many procs the factories that are there of runs have made.
type made map[runKey]int

// of returns the number from which procs of a run are not there yet. Without a factory, and when that is gone, all are
// there, or were.
func (m made) of(run ledger.Run) int {
	n, known := m[keyOf(run)]
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
	var asked, dags []ledger.Run
	var clusters []int
	var uids []string
	for _, run := range runs {
		switch {
		case run.Factory == 0 || run.Confirmed:
		case run.Kind != ledger.Workflows:
			asked, clusters = append(asked, run), append(clusters, run.Cluster)
		case run.Stop == "": // nodes have rows from the beginning
			dags, uids = append(dags, run), append(uids, run.UID)
		}
	}
	var which []condor.Constraint
	if len(asked) > 0 {
		which = append(which, constraint(clusters))
	}
	if len(dags) > 0 {
		which = append(which, condor.NodesConstraint(uids...))
	}
	if len(which) == 0 {
		return nil, nil
	}
	all, paused, nodes := made{}, map[runKey]string{}, map[ownedDAG]string{}
	factories := schedd.Query{Where: condor.Or(which...), Factories: true}
	err := c.Schedd.Query(ctx, id, factories, func(j condor.Job) error {
		key := keyOfJob(j)
		all[key], paused[key] = j.Factory.Next, whyPaused(j)
		nodes[ownedDAG{j.Node, j.Owner}] = whyPaused(j)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for factories: %w", err)
	}
	if err := c.notePaused(ctx, dags, nodes); err != nil {
		return nil, err
	}
	for _, run := range asked {
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			n, there := all[keyOf(run)]
			if err := recordPaused(tx, run, paused[keyOf(run)]); err != nil {
				return err
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

// ownedDAG is what nodes are of. Anyone may write the tag of a node into a factory of their own: only that of the DAG's
// account counts, once that is known.
type ownedDAG struct {
	tag   condor.NodeTag
	owner string
}

// notePaused records why the factories of the nodes of DAGs make no more of them.
func (c *Checker) notePaused(ctx context.Context, dags []ledger.Run, paused map[ownedDAG]string) error {
	for _, run := range dags {
		why := paused[ownedDAG{condor.NodeTag{UID: run.UID, DAG: run.Attempt}, run.Account}]
		if why == run.Paused() {
			continue
		}
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error { return recordPaused(tx, run, why) })
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return fmt.Errorf("record why nodes are not made: %w", err)
		}
		c.Observer.Changed(run)
	}
	return nil
}

// whyPaused names the cluster, too: that of a DAG's run is the launcher's.
func whyPaused(factory condor.Job) string {
	if factory.Factory.Paused == "" {
		return ""
	}
	return fmt.Sprintf("%s (cluster %d)", factory.Factory.Paused, factory.Cluster)
}

// recordPaused records why the factory of a run that is not to be stopped makes no more jobs.
func recordPaused(tx *ledger.Tx, run ledger.Run, why string) error {
	if run.Stop != "" || why == run.Paused() {
		return nil
	}
	now, err := tx.Run(run.UID, run.Attempt)
	if err != nil || now.Stop != "" {
		return err
	}
	return tx.UpdateRun(now.PausedFor(why))
}
