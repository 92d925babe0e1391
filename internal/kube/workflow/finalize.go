package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// finalize removes a deleted workflow from HTCondor and from ephemeral registries, then from the ledger, the store and the staging directory, and
// releases the object. The finalizer stays until a successful answer shows none of its jobs alive.
func (c *Controller) finalize(ctx context.Context, w *v1alpha1.HTCWorkflow) error {
	runs, err := c.Runs(ctx, w.Namespace+"/"+w.Name)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(runs, func(run ledger.Run) bool { return run.UID != string(w.UID) })
	if w.Abandoned() {
		c.Log.Warn().Str("workflow", w.Namespace+"/"+w.Name).Msg("abandoned: its HTCondor jobs, if any, are left as they are")
		c.Events.Warning(w, "Abandoned", "let go by annotation "+v1alpha1.AbandonAnnotation+"; its HTCondor jobs, if any, are left as they are")
	} else {
		targets := backend.Targets(own)
		if len(own) == 0 { // the ledger may have been lost: the finalizer was set before anything was sent
			p, _ := c.pools.New(asJob(w)) // without its pool it is looked for where htcd's flags say
			t, _, err := c.choose(ctx, w, p)
			if err != nil {
				return err
			}
			targets = sending.Places(t, p.Choice(asJob(w)), w.Status.Schedd)
		}
		if err := c.removeAll(ctx, targets, string(w.UID), own); err != nil {
			if _, pause := errors.AsType[*sending.Waiting](err); pause {
				return err
			}
			return fmt.Errorf("remove the jobs (an administrator can let go of them with the annotation %s=true): %w", v1alpha1.AbandonAnnotation, err)
		}
	}
	if err := c.dropArtifacts(ctx, w, own); err != nil {
		return err
	}
	if err := c.forget(ctx, w.Namespace, w.Name, string(w.UID)); err != nil {
		return err
	}
	if err := c.Objects.RemoveFinalizer(ctx, w); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	c.Memory.Change(w.Namespace+"/"+w.Name, func(r *record) { r.Released = w.ResourceVersion })
	return nil
}

// removeAll removes every DAG of a workflow by its tag, and then what is left of its nodes. Their output is no longer wanted.
func (c *Controller) removeAll(ctx context.Context, targets []backend.Target, uid string, runs []ledger.Run) error {
	for _, t := range targets {
		if err := c.releaseAll(ctx, t, uid); err != nil {
			return err
		}
	}
	if err := c.sender.RemoveAll(ctx, targets, uid, runs); err != nil {
		return err
	}
	for _, t := range targets {
		if err := c.sender.RemoveNodes(ctx, t, runs, schedd.NodesConstraint(uid), "htcd: the HTCWorkflow was deleted"); err != nil {
			return fmt.Errorf("remove nodes: %w", err)
		}
	}
	return nil
}

// releaseAll lets every DAG of a workflow that has ended, or was removed, leave the queue. The ledger may have lost some of them.
func (c *Controller) releaseAll(ctx context.Context, t backend.Target, uid string) error {
	id, err := c.questioner(ctx, t)
	if err != nil {
		return err
	}
	var ended []schedd.Procs
	err = c.Schedd.Queue(ctx, id, schedd.UIDConstraint(uid), func(j schedd.Job) error {
		if j.Status == schedd.Completed || j.Status == schedd.Removed {
			ended = append(ended, schedd.Procs{Tag: j.Tag, Cluster: j.Cluster, Numbers: []int{j.Proc}, DAG: true})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for DAGs that have ended: %w", err)
	}
	for _, procs := range ended {
		if err := c.eachSender(ctx, t, func(id schedd.Identity) error { return c.Schedd.Release(ctx, id, procs) }); err != nil {
			return fmt.Errorf("let a DAG that has ended leave the queue: %w", err)
		}
	}
	return nil
}

// Owner does the same for workflows that are gone but still have rows in the ledger.
func (k kind) Owner() orphans.Owner {
	return orphans.Owner{
		Exists: k.Objects.Exists, Forget: k.forget,
		Remove: func(ctx context.Context, uid string, own []ledger.Run) error {
			return k.removeAll(ctx, backend.Targets(own), uid, own)
		},
	}
}

func (c *Controller) forget(ctx context.Context, namespace, name, uid string) error {
	for n := 1; n > 0; {
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
			n, err = tx.DropResults(uid, resultsAtOnce)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := c.sender.Forget(ctx, namespace, name, uid); err != nil {
		return err
	}
	c.SecretTouched(namespace)
	return nil
}

// resultsAtOnce is how many results one transaction deletes.
const resultsAtOnce = 10_000
