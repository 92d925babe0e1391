package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Remove implements reconciler.Kind, as does Forget.
func (k kind) Remove(ctx context.Context, w *v1alpha1.HTCWorkflow, own []ledger.Run) error {
	targets := backend.Targets(own)
	if forgotten(w, own) {
		var err error
		if targets, err = k.Everywhere(ctx, w, own); err != nil {
			return err
		}
		own = nil // the remaining rows say nothing about the lost ones
	}
	return k.removeAll(ctx, targets, string(w.UID), w.CreationTimestamp.Time, own)
}

// forgotten reports whether the ledger lacks everything, or the newest, of what may have been sent for a workflow: the
// finalizer was set before.
func forgotten(w *v1alpha1.HTCWorkflow, own []ledger.Run) bool {
	s := Situation{Workflow: w}
	own, s.Attempt = Attempt(own, 0)
	for _, run := range own {
		s.DAGs = append(s.DAGs, DAG{Run: run})
	}
	return len(own) == 0 || s.lost()
}

// Forget drops, before the rows that name them, the artifacts in ephemeral registries.
func (k kind) Forget(ctx context.Context, w *v1alpha1.HTCWorkflow, own []ledger.Run) error {
	if err := k.dropArtifacts(ctx, w, own); err != nil {
		return err
	}
	return k.forget(ctx, w.Namespace, w.Name, string(w.UID))
}

// removeAll removes every DAG of a workflow by its tag, and then what is left of its nodes. Their output is no longer
// wanted.
func (c *Controller) removeAll(
	ctx context.Context,
	targets []backend.Target,
	uid string,
	created time.Time,
	runs []ledger.Run,
) error {
	for _, t := range targets {
		if err := c.releaseAll(ctx, t, uid); err != nil {
			return err
		}
	}
	runs, err := c.unsettled(ctx, runs)
	if err != nil {
		return err
	}
	return c.sender.RemoveAll(ctx, targets, uid, created, runs, func(ctx context.Context, t backend.Target) error {
		err := c.sender.RemoveNodes(ctx, t, runs, condor.NodesConstraint(uid), "htcd: the HTCWorkflow was deleted")
		if err != nil {
			err = fmt.Errorf("remove nodes: %w", err)
		}
		return err
	})
}

// unsettled returns the runs with those unconfirmed that may still be in the queue: DAGMan's job may end before its
// nodes do, and waits until their output is fetched.
func (c *Controller) unsettled(ctx context.Context, runs []ledger.Run) ([]ledger.Run, error) {
	runs = slices.Clone(runs)
	for i := range runs {
		if !runs[i].Confirmed {
			continue
		}
		d, err := c.readDAG(ctx, runs[i])
		if err != nil {
			return nil, err
		}
		runs[i].Confirmed = d.settled() && !c.owesOutput(d)
	}
	return runs, nil
}

// releaseAll lets every DAG of a workflow that has ended, or was removed, leave the queue. The ledger may have lost
// some of them.
func (c *Controller) releaseAll(ctx context.Context, t backend.Target, uid string) error {
	id, err := c.Questioner(ctx, t)
	if err != nil {
		return err
	}
	var queued []condor.Job
	err = c.Schedd.Query(ctx, id, schedd.Query{Where: condor.UIDConstraint(uid)}, func(j condor.Job) error {
		queued = append(queued, j)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for DAGs that have ended: %w", err)
	}
	return c.releaseEnded(ctx, t, queued)
}

// releaseEnded lets those of some DAGs that have ended, or were removed, leave the queue.
func (c *Controller) releaseEnded(ctx context.Context, t backend.Target, dags []condor.Job) error {
	for _, j := range dags {
		if !j.Over() {
			continue
		}
		procs := schedd.Procs{Tag: j.Tag, Cluster: j.Cluster, Numbers: []int{j.Proc}, DAG: true}
		err := c.eachSender(ctx, t, func(id schedd.Identity) error {
			_, err := c.Schedd.Change(ctx, id, schedd.Release{Procs: procs})
			return err
		})
		if err != nil {
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
			return k.removeAll(ctx, backend.Targets(own), uid, time.Time{}, own)
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
