package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// stop removes what has not ended of the newest DAG from HTCondor. The intention is recorded first, so that it is
// carried out whatever happens to htcd or the schedd in between:
//
//	Submitted ─> Submitted, Stop ─> what callbacks ended is confirmed ─> condor_rm of DAGMan, then of nodes ─> all have their end
//	                  ▲                                                                    │
//	                  └──────────────────── killed or failed anywhere ─────────────────────┘
//
// A node that ended by itself keeps its result, and the output of all stays with DAGMan's job until it has been
// fetched.
func (c *Controller) stop(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation, d Decision) error {
	run := s.newest().Run
	if run.Stop == "" {
		if d.Reason == crosscheck.StopCompleted {
			if err := c.confirmEnough(ctx, s); err != nil {
				return err
			}
		}
		fresh, err := reconciler.Fresh(ctx, c.engine, w)
		if err != nil || !fresh {
			return err
		}
		var begun bool
		if run, begun, err = c.sender.BeginStop(ctx, run, d.Reason, d.Message); err != nil || !begun {
			return err
		}
		c.Events.Normal(w, "Stopping", d.Message+": what has not ended is being removed from HTCondor")
	}
	if err := c.removeDAG(ctx, w, run); err != nil {
		return err
	}
	return c.settle(ctx, run, false)
}

// confirmEnough returns a *sending.Waiting while fewer sequences than are wanted have succeeded by what HTCondor has
// confirmed. A callback comes before the output, and after an outage HTCondor may run the job again: a success that is
// counted on must not be removed.
func (c *Controller) confirmEnough(ctx context.Context, s Situation) error {
	dag := s.newest()
	told, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (int, error) {
		return tx.UnconfirmedSequences(dag.Run.UID, dag.Run.Attempt)
	})
	if err != nil || dag.Sequences.Succeeded-told >= s.wanted() {
		return err
	}
	if err := c.checkNodes(ctx, dag.Run); err != nil {
		return err
	}
	return unconfirmed(2 * time.Second)
}

func (c *Controller) checkNodes(ctx context.Context, run ledger.Run) error {
	if err := c.nodes.Check(ctx, group(run)); err != nil {
		return fmt.Errorf("ask how the nodes of DAG %d ended: %w", run.Attempt, err)
	}
	return nil
}

func unconfirmed(after time.Duration) error {
	return &sending.Waiting{After: after, Message: "HTCondor has not confirmed yet how some nodes ended"}
}

// removeDAG removes a DAG's own job, which takes its nodes along, and then what is left of these: a launcher that does
// not run takes no factory along, and somebody may have removed DAGMan before.
func (c *Controller) removeDAG(ctx context.Context, w *v1alpha1.HTCWorkflow, run ledger.Run) error {
	var unsure []ledger.Node
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		for _, state := range []ledger.NodeState{ledger.NodeDone, ledger.NodeFailed} {
			some, err := tx.Nodes(
				run.UID,
				run.Attempt,
				ledger.NodeFilter{State: state, Unconfirmed: true, Limit: nodesAtOnce},
			)
			if err != nil {
				return err
			}
			unsure = append(unsure, some...)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what has ended: %w", err)
	}
	if len(unsure) > 0 {
		// HTCondor shows it as running while it brings back its output; it is left to end there, too.
		if err := c.checkNodes(ctx, run); err != nil {
			return err
		}
		if slices.ContainsFunc(
			unsure,
			func(n ledger.Node) bool { return c.Now().Sub(n.Changed) < crosscheck.Settling },
		) {
			return unconfirmed(time.Second)
		}
	}
	// Name the cluster as well: the tag alone may also be in a stranger's jobs.
	own := tag(w, run.Attempt).Constraint().NotIn(condor.Completed, condor.Removed).In(run.Cluster)
	t, reason := backend.TargetOf(run), crosscheck.RemoveReason(run.Stop)
	if !run.Confirmed {
		if err := c.sender.Remove(ctx, t, own, reason); err != nil {
			return fmt.Errorf("remove DAG %d: %w", run.Attempt, err)
		}
	}
	if err := c.sender.RemoveNodes(
		ctx,
		t,
		[]ledger.Run{run},
		tag(w, run.Attempt).NodesConstraint(),
		reason,
	); err != nil {
		return fmt.Errorf("remove the nodes of DAG %d: %w", run.Attempt, err)
	}
	return nil
}

// settle asks how a DAG and its nodes ended, and returns nil once HTCondor has said it of all. cut: it has not run to
// its end. A factory goes on if somebody has removed its launcher while that did not run: HTCondor then removes the
// nodes that were made, and the factory makes others.
func (c *Controller) settle(ctx context.Context, run ledger.Run, cut bool) error {
	if run.Factory > 0 && run.Confirmed && cut {
		of := condor.Tag{UID: run.UID, Attempt: run.Attempt}.NodesConstraint()
		err := c.sender.RemoveNodes(ctx, backend.TargetOf(run), []ledger.Run{run}, of, "htcd: what made it was removed")
		if err != nil {
			return fmt.Errorf("remove what is left of the nodes of DAG %d: %w", run.Attempt, err)
		}
	}
	if err := c.check(ctx, group(run)); err != nil {
		return fmt.Errorf("ask how DAG %d ended: %w", run.Attempt, err)
	}
	over, err := c.isSettled(ctx, run)
	if err == nil && !over {
		err = &sending.Waiting{After: 2 * time.Second, Message: "HTCondor has not said yet how every node ended"}
	}
	return err
}

// isSettled reports whether HTCondor has confirmed the end of a DAG and of its nodes.
func (c *Controller) isSettled(ctx context.Context, run ledger.Run) (bool, error) {
	d, err := c.readDAG(ctx, run)
	return err == nil && d.settled(), err
}

// readDAG reads what the ledger knows of a DAG now.
func (c *Controller) readDAG(ctx context.Context, run ledger.Run) (d DAG, err error) {
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		now, err := tx.Run(run.UID, run.Attempt)
		if err != nil {
			return err
		}
		d, err = gatherDAG(tx, now)
		return err
	})
	if err != nil {
		return DAG{}, fmt.Errorf("read how DAG %d ended: %w", run.Attempt, err)
	}
	return d, nil
}

// check asks about the own jobs of DAGs, and then about their nodes.
func (c *Controller) check(ctx context.Context, dags backend.Group) error {
	going := dags
	going.Runs = slices.DeleteFunc(slices.Clone(dags.Runs), func(run ledger.Run) bool { return run.Confirmed })
	if len(going.Runs) > 0 {
		if err := c.dags.Check(ctx, going); err != nil {
			return err
		}
	}
	return c.nodes.Check(ctx, dags)
}

func group(run ledger.Run) backend.Group { return backend.Groups([]ledger.Run{run})[0] }
