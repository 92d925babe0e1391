package job

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Remove implements reconciler.Kind, as does Forget. If no row says what was sent, the ledger may have been lost: the
// finalizer was set before anything was sent.
func (k kind) Remove(ctx context.Context, job *v1alpha1.HTCJob, own []ledger.Run) error {
	if orphans.AnySent(own) || k.forgotten(job, own) {
		return k.removeEverywhere(ctx, job, own)
	}
	return nil
}

func (k kind) Forget(ctx context.Context, job *v1alpha1.HTCJob, _ []ledger.Run) error {
	return k.forget(ctx, job.Namespace, job.Name, string(job.UID))
}

// Owner does the same for HTCJobs that are gone but still have rows in the ledger.
func (k kind) Owner() orphans.Owner {
	return orphans.Owner{
		Exists: k.Objects.Exists, Forget: k.forget,
		Remove: func(ctx context.Context, uid string, own []ledger.Run) error {
			return k.removeAll(ctx, backend.Targets(own), uid, time.Time{}, own)
		},
	}
}

// removeEverywhere calls removeAll for all places where the runs were. Runs that the ledger has lost are looked for
// where the status says, and wherever one could be sent now.
func (c *Controller) removeEverywhere(ctx context.Context, job *v1alpha1.HTCJob, own []ledger.Run) error {
	targets := backend.Targets(own)
	// recorded again where a new one would go
	unknown := func(run ledger.Run) bool { return run.Restored && run.State == ledger.Intent }
	if lifecycle.Forgotten(job, own) || slices.ContainsFunc(own, unknown) {
		var err error
		if targets, err = c.Everywhere(ctx, job, own); err != nil {
			return err
		}
		own = nil // the remaining rows say nothing about the lost ones
	}
	return c.removeAll(ctx, targets, string(job.UID), job.CreationTimestamp.Time, own)
}

// removeAll removes every job of an HTCJob by its tag, and waits until its factories have left, too.
func (c *Controller) removeAll(
	ctx context.Context,
	targets []backend.Target,
	uid string,
	created time.Time,
	runs []ledger.Run,
) error {
	runs, err := c.unfetched(ctx, runs)
	if err != nil {
		return err
	}
	return c.sender.RemoveAll(ctx, targets, uid, created, runs, func(ctx context.Context, t backend.Target) error {
		return c.sender.NoFactory(ctx, t, runs, condor.UIDConstraint(uid))
	})
}

// unfetched returns the runs with those unconfirmed whose jobs wait in the queue until their output is fetched.
func (c *Controller) unfetched(ctx context.Context, runs []ledger.Run) ([]ledger.Run, error) {
	runs = slices.Clone(runs)
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for i, run := range runs {
			if !run.Confirmed || run.OutputDir == "" {
				continue
			}
			is, err := tx.Output(run.UID, run.Attempt)
			if err != nil {
				return err
			}
			runs[i].Confirmed = is.Waiting == 0
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read whose output is to be fetched: %w", err)
	}
	return runs, nil
}

func (c *Controller) forget(ctx context.Context, namespace, name, uid string) error {
	if err := c.sender.Forget(ctx, namespace, name, uid); err != nil {
		return err
	}
	c.secrets.Add(namespace)
	return nil
}

// adoptOrphans queues every HTCJob the ledger knows, since one that vanished while htcd was away causes no event, and
// puts aside what is staged of runs that are no open intents: HTCondor has the files of those that were sent, and after
// the restore of an older ledger nothing else would remove those of others. Only inputs can be staged before their run
// is recorded, and those are read again.
func (c *Controller) adoptOrphans(ctx context.Context) error {
	entries, err := os.ReadDir(c.Staging) // before the ledger is read: what is staged afterwards is not looked at
	if err != nil {
		return fmt.Errorf("list staged files: %w", err)
	}
	var runs, dags []ledger.Run
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if runs, err = tx.Runs(ledger.RunFilter{}); err == nil {
			dags, err = tx.Runs(ledger.RunFilter{Kind: ledger.Workflows})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	if err := c.Ledger.Write(
		ctx,
		(*ledger.Tx).DropPoolSpecs,
	); err != nil { // another write will say why htcd cannot go on
		c.Log.Warn().Err(err).Msg("specs of pools that no run needs are still in the ledger")
	}
	intents := map[string]bool{}
	for _, run := range slices.Concat(runs, dags) {
		if run.State == ledger.Intent {
			intents[filepath.Base(run.TempDir)] = true
		}
	}
	for _, run := range runs {
		if c.Namespace == "" || run.Namespace == c.Namespace {
			c.Routine.Add(run.Namespace + "/" + run.Name)
		}
	}
	if err := c.putAside(entries, intents); err != nil {
		c.Log.Warn().Err(err).Msg("staged files that nobody needs are still on the disk")
	}
	return nil
}

// asideDir is the directory in that of the staged files for those that are to be removed. No run has such a name.
const asideDir = ".aside"

// putAside moves what is staged of all runs but these, which is quick even if there are many files. What then is under
// the name of a run is its own.
func (c *Controller) putAside(entries []os.DirEntry, but map[string]bool) error {
	aside := filepath.Join(c.Staging, asideDir)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	into, err := os.MkdirTemp(aside, "")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if but[entry.Name()] || entry.Name() == asideDir {
			continue
		}
		if err := os.Rename(filepath.Join(c.Staging, entry.Name()), filepath.Join(into, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// removeAside removes what was put aside.
func (c *Controller) removeAside() {
	if err := os.RemoveAll(filepath.Join(c.Staging, asideDir)); err != nil {
		c.Log.Warn().Err(err).Msg("staged files that nobody needs are still on the disk")
	}
}
