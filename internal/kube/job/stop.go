package job

import (
	"context"
	"fmt"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// stop removes the jobs of a run that have not ended from HTCondor. The intention is recorded first, so that it is
// carried out whatever happens to htcd or the schedd in between:
//
//	Submitted ──> Submitted, Stop ──> condor_rm ──> gone from the queue ──> every proc has its end, from queue or history
//	                   ▲                                     │                             │
//	                   └───── killed or failed anywhere ─────┘               suspended: Removed; else as it is
//
// When spec.maxFailures is reached, what runs may stay; it is removed as soon as it no longer runs. A job that ended
// by itself in the meantime keeps its result and stays in the queue until its output has been fetched.
func (c *Controller) stop(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	s lifecycle.Situation,
	d lifecycle.Decision,
) error {
	run := *s.Run
	if run.Stop == "" {
		fresh, err := reconciler.Fresh(ctx, c.engine, job)
		if err != nil || !fresh {
			return err
		}
		var begun bool
		if run, begun, err = c.sender.BeginStop(ctx, run, d.Reason, d.Message); err != nil || !begun {
			return err
		}
		leaving := s.Counts.Active
		if s.SparesRunning(d.Reason) {
			leaving -= s.Counts.Running
		}
		c.Events.Normal(job, "Stopping",
			fmt.Sprintf("%s: %s being removed from HTCondor", d.Message, lifecycle.IsOrAre(leaving, "job")))
	}
	// Name the cluster as well: the tag alone may also be in a stranger's jobs.
	// It matches the factory of the jobs, too, whose ad has neither a status nor a number.
	these := site.Tag(job, run.Attempt).Constraint().NotIn(condor.Completed).In(run.Cluster)
	if s.SparesRunning(run.Stop) {
		these = these.NotIn(condor.Running, condor.TransferringOutput, condor.Suspended)
	}
	if run.Factory > 0 && s.Counts.Waiting > 0 { // else all were made, or it has been told
		if err := c.stopMaking(ctx, job, run); err != nil {
			return err
		}
	}
	spared, err := c.justEnded(ctx, run)
	if err != nil {
		return fmt.Errorf("read what has ended: %w", err)
	}
	if len(spared) > 0 {
		these = these.And(condor.NotNumbers(run.Sent != "", spared))
	}
	if err := c.sender.Remove(ctx, backend.TargetOf(run), these, crosscheck.RemoveReason(run.Stop)); err != nil {
		return fmt.Errorf("remove the jobs of attempt %d: %w", run.Attempt, err)
	}
	if _, err := c.checkRun(ctx, run.UID); err != nil {
		return fmt.Errorf("ask how the jobs of attempt %d ended: %w", run.Attempt, err)
	}
	var stopped int
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if run, err = tx.Run(run.UID, run.Attempt); err == nil {
			stopped, err = tx.CountReason(run.UID, run.Attempt, run.Stop)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read what was stopped: %w", err)
	}
	switch {
	case run.State != ledger.Submitted: // its files had never arrived
		return nil
	case !run.Confirmed:
		if now, err := c.gather(ctx, job); err != nil || lifecycle.Plan(now).Action != lifecycle.Stop {
			return err // what still runs may go on
		}
		return &sending.Waiting{After: 2 * time.Second, Message: "HTCondor has not said yet how every job ended"}
	case run.Stop != crosscheck.StopSuspended:
		return nil
	case stopped == 0: // all had ended by themselves
		return c.endStop(ctx, run, func(run *ledger.Run) { run.Stop, run.Message = "", "" })
	}
	return c.endStop(
		ctx,
		run,
		func(run *ledger.Run) { run.State, run.Reason = ledger.Removed, crosscheck.StopSuspended },
	)
}

// maxSpared bounds the length of a constraint.
const maxSpared = 1000

// justEnded lists the procs whose callbacks arrived a moment ago. HTCondor shows them as running while it brings
// back their output; they are left to end there, too.
func (c *Controller) justEnded(ctx context.Context, run ledger.Run) ([]int, error) {
	var numbers []int
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		numbers = nil
		for _, status := range []ledger.Status{ledger.StatusSucceeded, ledger.StatusFailed} {
			procs, err := tx.Procs(
				run.UID,
				run.Attempt,
				ledger.ProcFilter{Status: status, Unconfirmed: true, Limit: maxSpared},
			)
			if err != nil {
				return err
			}
			for _, p := range procs {
				if c.Now().Sub(p.Changed) < crosscheck.Settling {
					numbers = append(numbers, p.Proc)
				}
			}
		}
		return nil
	})
	return numbers, err
}

// endStop records that there is nothing left to stop.
func (c *Controller) endStop(ctx context.Context, run ledger.Run, change func(*ledger.Run)) error {
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		now, err := tx.Run(run.UID, run.Attempt)
		if err != nil || now.State != ledger.Submitted || now.Stop != run.Stop {
			return err
		}
		change(&now)
		return tx.UpdateRun(now)
	})
	if err != nil {
		return fmt.Errorf("record that attempt %d was stopped: %w", run.Attempt, err)
	}
	return nil
}
