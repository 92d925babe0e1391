package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/orphans"
	"htc.cern.ch/htcd/internal/pool"
	"htc.cern.ch/htcd/internal/sending"
)

// finalize removes a deleted HTCJob from HTCondor, then from the ledger and the staging directory, and
// releases the object. The finalizer stays until a successful answer shows none of its jobs alive.
func (c *Controller) finalize(ctx context.Context, job *v1alpha1.HTCJob) error {
	key := job.Namespace + "/" + job.Name
	runs, err := c.runsOf(ctx, key)
	if err != nil {
		return err
	}
	var own []ledger.Run
	for _, run := range runs {
		if run.UID == string(job.UID) {
			own = append(own, run)
		}
	}
	switch {
	case job.Abandoned():
		c.Log.Warn().Str("job", key).Msg("abandoned: its HTCondor jobs, if any, are left as they are")
		c.Events.Warning(job, "Abandoned", "let go by annotation "+v1alpha1.AbandonAnnotation+"; its HTCondor jobs, if any, are left as they are")
	// If no row says what was sent, the ledger may have been lost: the finalizer was set before anything was sent.
	case orphans.AnySent(own) || c.forgotten(job, own):
		err := c.removeEverywhere(ctx, job, own)
		if _, pause := errors.AsType[*sending.Waiting](err); err != nil && !pause {
			return fmt.Errorf("remove the jobs (an administrator can let go of them with the annotation %s=true): %w", v1alpha1.AbandonAnnotation, err)
		} else if err != nil {
			return err
		}
	}
	if err := c.forget(ctx, job.Namespace, job.Name, string(job.UID)); err != nil {
		return err
	}
	if err := c.Objects.RemoveFinalizer(ctx, job); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	c.memory.change(key, func(r *remembered) { r.released = job.ResourceVersion })
	return nil
}

// sweep does the same for HTCJobs that are gone but still have rows in the ledger.
func (c *Controller) sweep(ctx context.Context, key string) error {
	runs, err := c.runsOf(ctx, key)
	if err != nil {
		return err
	}
	return c.orphans.Sweep(ctx, key, runs, orphans.Owner{
		Exists: c.Objects.Exists, Forget: c.forget,
		Remove: func(ctx context.Context, uid string, own []ledger.Run) error {
			return c.sender.RemoveAll(ctx, backend.Targets(own), uid, own)
		},
	})
}

// removeEverywhere calls RemoveAll for all places where the runs were. Runs that the ledger has lost are looked for where
// the status says, and where they would be sent now.
func (c *Controller) removeEverywhere(ctx context.Context, job *v1alpha1.HTCJob, own []ledger.Run) error {
	targets := backend.Targets(own)
	if lifecycle.Forgotten(job, own) {
		own = nil // the remaining rows say nothing about the lost ones
		p, err := c.pools.Lost(job)
		if err != nil {
			p = pool.Pool{} // without its pool it is looked for where htcd's flags say
		}
		t, _, err := c.choose(ctx, job, p)
		if err != nil {
			return err
		}
		lost := []backend.Target{t}
		if job.Status.Schedd != "" && job.Status.Schedd != t.Endpoint.Schedd {
			t.Endpoint.Schedd = job.Status.Schedd
			lost = append(lost, t)
		}
		for _, t := range lost {
			if !slices.Contains(targets, t) {
				targets = append(targets, t)
			}
		}
	}
	return c.sender.RemoveAll(ctx, targets, string(job.UID), own)
}

// forget drops the rows, the output and the staged files of an HTCJob: staged files first, since the rows say where
// they are, and output together with the rows, so that no fetch can add to it afterwards.
func (c *Controller) forget(ctx context.Context, namespace, name, uid string) error {
	if err := c.sender.Unstage(uid); err != nil {
		return err
	}
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := c.fetcher.Drop(tx, namespace, name, uid); err != nil {
			return err
		}
		return tx.DeleteRuns(uid)
	})
	if err != nil {
		return fmt.Errorf("drop rows and output: %w", err)
	}
	c.tries.Forget(uid)
	c.secrets.Add(namespace)
	if err := c.Output.Sweep(false); err != nil {
		c.Log.Warn().Err(err).Str("job", namespace+"/"+name).Msg("dropped output is still on the disk")
	}
	return nil
}

// adoptOrphans queues every HTCJob the ledger knows, since one that vanished while htcd was away causes no event, and removes
// the staged files of DAGs that were sent, and of runs it does not know: after the restore of an older ledger nothing else would. Of what is
// staged only inputs can be there before their run is recorded, and those are read again.
func (c *Controller) adoptOrphans(ctx context.Context) error {
	var runs, dags []ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if runs, err = tx.Runs(ledger.RunFilter{}); err == nil {
			dags, err = tx.Runs(ledger.RunFilter{Kind: ledger.Workflows})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	if err := c.Ledger.Write(ctx, (*ledger.Tx).DropPoolSpecs); err != nil { // another write will say why htcd cannot go on
		c.Log.Warn().Err(err).Msg("specs of pools that no run needs are still in the ledger")
	}
	staged := make(map[string]bool, len(runs)+len(dags))
	for _, run := range runs {
		staged[filepath.Base(run.TempDir)] = true
	}
	for _, run := range dags {
		if run.State == ledger.Intent { // htcd may have ended before it removed those of one that was sent
			staged[filepath.Base(run.TempDir)] = true
		}
	}
	for _, run := range runs {
		if c.Namespace == "" || run.Namespace == c.Namespace {
			c.routine.Add(run.Namespace + "/" + run.Name)
		}
	}
	if err := c.sweepStaging(staged); err != nil {
		c.Log.Warn().Err(err).Msg("staged files that nobody needs are still on the disk")
	}
	return nil
}

// sweepStaging removes the staged files of all runs but the known ones.
func (c *Controller) sweepStaging(known map[string]bool) error {
	entries, err := os.ReadDir(c.Staging)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if known[entry.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.Staging, entry.Name())); err != nil {
			return fmt.Errorf("remove staged files: %w", err)
		}
	}
	return nil
}
