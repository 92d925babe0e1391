package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/schedd"
)

// stop takes the jobs of a run that have not ended out of HTCondor. That it shall be stopped is written down first, so that it
// is, whatever happens to htcd or to the schedd in between:
//
//	Submitted ──> Submitted, Stop ──> condor_rm ──> gone from the queue ──> every proc has its end, from queue or history
//	                   ▲                                     │                             │
//	                   └───── killed or failed anywhere ─────┘               suspended: Removed; else as it is
//
// What ended by itself in the meantime keeps its verdict, and stays in the queue until its output has been fetched.
func (c *Controller) stop(ctx context.Context, job *v1alpha1.HTCJob, s lifecycle.Situation, why string) error {
	run := *s.Run
	if run.Stop == "" {
		fresh, err := c.fresh(ctx, job)
		if err != nil || !fresh {
			return err
		}
		run, err = c.beginStop(ctx, job, run, why, s.Counts.Active)
		if errors.Is(err, errEnded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("record that attempt %d is stopped: %w", run.Attempt, err)
		}
	}
	// Its cluster as well: the tag alone may stand in a stranger's jobs.
	constraint := schedd.In(run.Cluster, fmt.Sprintf("%s && JobStatus =!= %d", tag(job, run.Attempt).Constraint(), schedd.Completed))
	spared, err := c.justEnded(ctx, run)
	if err != nil {
		return fmt.Errorf("read what has ended: %w", err)
	}
	if len(spared) > 0 {
		constraint += " && !member(ProcId, {" + strings.Join(spared, ",") + "})"
	}
	alive, err := c.remove(ctx, backend.TargetOf(run), constraint, crosscheck.RemoveReason(run.Stop))
	if err != nil {
		return fmt.Errorf("remove the jobs of attempt %d: %w", run.Attempt, err)
	}
	if len(alive) > 0 {
		return &waiting{time.Second, fmt.Sprintf("%s not out of the queue yet", lifecycle.Plural(len(alive), "job"))}
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
		return &waiting{2 * time.Second, "HTCondor has not said yet how every job ended"}
	case run.Stop == crosscheck.StopDeadline:
		return nil
	case stopped == 0: // all had ended by themselves
		return c.endStop(ctx, run, func(run *ledger.Run) { run.Stop, run.Message = "", "" })
	}
	return c.endStop(ctx, run, func(run *ledger.Run) { run.State, run.Reason = ledger.Removed, crosscheck.StopSuspended })
}

// maxSpared bounds a constraint.
const maxSpared = 1000

// justEnded lists the procs that their callbacks ended a moment ago. HTCondor still has them as running while it brings
// back their output; they are left to end there, too.
func (c *Controller) justEnded(ctx context.Context, run ledger.Run) ([]string, error) {
	var numbers []string
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		numbers = nil
		for _, status := range []ledger.Status{ledger.StatusSucceeded, ledger.StatusFailed} {
			procs, err := tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Status: status, Unconfirmed: true, Limit: maxSpared})
			if err != nil {
				return err
			}
			for _, p := range procs {
				if c.Now().Sub(p.Changed) < crosscheck.Settling {
					numbers = append(numbers, strconv.Itoa(p.Proc))
				}
			}
		}
		return nil
	})
	return numbers, err
}

// errEnded says that there was nothing left to be stopped.
var errEnded = errors.New("the attempt has ended")

// beginStop writes down that a run is to be stopped, and why.
func (c *Controller) beginStop(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run, why string, active int) (ledger.Run, error) {
	message := crosscheck.StopMessage(why)
	if deadline := job.Spec.ActiveDeadlineSeconds; why == crosscheck.StopDeadline && deadline != nil {
		message = fmt.Sprintf("%s have passed since the submission (spec.activeDeadlineSeconds)", lifecycle.Plural(int(*deadline), "second"))
	}
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
		if run, err = tx.Run(run.UID, run.Attempt); err != nil {
			return err
		}
		if run.State != ledger.Submitted || run.Stop != "" {
			return errEnded
		}
		run.Stop, run.Message, run.Confirmed = why, message, false
		return tx.UpdateRun(run)
	})
	if err != nil {
		return run, err
	}
	c.Events.Normal(job, "Stopping", fmt.Sprintf("%s: %s being removed from HTCondor", message, lifecycle.IsOrAre(active, "job")))
	return run, nil
}

// endStop writes down that nothing is left to be stopped.
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

// withdraw gives up an attempt of which the schedd twice said that it has nothing, because it must not be sent now.
func (c *Controller) withdraw(ctx context.Context, run ledger.Run) error {
	run.State, run.Stop, run.Reason, run.Message = ledger.Removed, crosscheck.StopSuspended, crosscheck.StopSuspended, "spec.suspend is true"
	run.Ended, run.Confirmed = c.Now(), true
	if err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error { return updateIntent(tx, run) }); err != nil {
		return fmt.Errorf("record that attempt %d is not sent: %w", run.Attempt, err)
	}
	c.absences.Clear(run.UID)
	c.tries.Clear(run)
	return os.RemoveAll(run.TempDir)
}
