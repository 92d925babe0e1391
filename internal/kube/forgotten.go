package kube

import (
	"context"
	"errors"
	"slices"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// resumeWaiting takes up the jobs that wait in the queue with their output and that nobody else comes to: those that
// the ledger has as fetched leave it, for htcd ended between the two; and of a suspended run that was restored from its
// object what had ended before is fetched. It asks once at the start, and again when such a run was restored.
func (c *Controller) resumeWaiting(ctx context.Context) error {
	if c.Output.Root == "" {
		return nil
	}
	var runs []ledger.Run
	for _, state := range []ledger.RunState{ledger.Submitted, ledger.Removed} {
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
			these, err := tx.Runs(ledger.RunFilter{State: state})
			for _, run := range these {
				if run.Cluster > 0 && c.fetchable(run) {
					runs = append(runs, run)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	var err error
	for _, g := range backend.Groups(runs) {
		err = errors.Join(err, c.resumeGroup(ctx, g))
	}
	return err
}

// resumeGroup is that for the runs of one group.
func (c *Controller) resumeGroup(ctx context.Context, g backend.Group) error {
	id, err := c.questioner(ctx, g.Target)
	if err != nil {
		return err
	}
	at, found := c.Now(), map[crosscheck.RunKey]map[int]crosscheck.Observation{}
	err = c.Schedd.Queue(ctx, id, schedd.Waiting, func(j schedd.Job) error {
		key := crosscheck.KeyOfJob(j)
		if found[key] == nil {
			found[key] = map[int]crosscheck.Observation{}
		}
		found[key][j.Proc] = crosscheck.Ad(j, at)
		return nil
	})
	if err != nil {
		return err
	}
	for _, run := range g.Runs {
		if said := found[crosscheck.KeyOf(run)]; len(said) > 0 {
			if err := c.resumeRun(ctx, run, said); err != nil {
				return err
			}
		}
	}
	return nil
}

// resumeRun releases those of the procs that are not to be fetched, and notes of those of a suspended run that they have run
// to their end. Of other runs the cross-check sees it.
func (c *Controller) resumeRun(ctx context.Context, run ledger.Run, said map[int]crosscheck.Observation) error {
	var done []int
	owed := map[int]crosscheck.Observation{}
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		done = nil
		clear(owed)
		for proc, o := range said {
			p, err := tx.Proc(run.UID, run.Attempt, proc)
			if err != nil {
				return err
			}
			switch {
			case p.Fetched != ledger.NotFetched:
				done = append(done, proc)
			case p.JobStatus != int(schedd.Completed) && run.State == ledger.Removed:
				owed[proc] = o
			}
		}
		return nil
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err == nil && len(owed) > 0 {
		err = c.noteOwed(ctx, run, owed)
	}
	if err != nil || len(done) == 0 {
		return err
	}
	slices.Sort(done)
	return c.release(ctx, run, done)
}

// noteOwed writes down how jobs of a suspended run ended, and has their output fetched.
func (c *Controller) noteOwed(ctx context.Context, run ledger.Run, owed map[int]crosscheck.Observation) error {
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		_, err := crosscheck.Observe(tx, run.UID, run.Attempt, owed, c.Now(), false)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err == nil {
		c.fetches.Add(run.Namespace + "/" + run.Name)
	}
	return err
}
