package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// remembered reconstructs the newest run of an HTCJob, which the ledger has lost, from the status. Its jobs were
// sent: whatever the schedd says now, they must not be sent again.
func (c *Controller) remembered(job *v1alpha1.HTCJob) (ledger.Run, []ledger.Proc) {
	status := job.Status
	run := c.newRun(job, int(status.Attempt))
	run.Generation, run.Procs = status.ObservedGeneration, int(
		status.Active+status.Succeeded+status.Failed+status.Stopped,
	)
	run.SpecHash, run.Rerun, run.InputsDigest, run.ItemsDigest =
		status.SpecHash, status.Rerun, status.InputsDigest, status.ItemsDigest
	// If the pool is no longer allowed, only the schedd's name is kept, so that no ticket is presented there.
	p, err := c.pools.Lost(job)
	if t, bad := p.Target(job, c.Site.Policy); err == nil && bad == nil {
		run = t.Of(run)
	}
	run = lifecycle.Recalled(run, status)
	if e := status.Effective; e != nil {
		run.Pool, run.Effective = e.Pool, pool.Write(e)
	}
	run.Schedd, run.Cluster = status.Schedd, int(status.ClusterID)
	run.Restored, run.Deferred = true, true // without its token only HTCondor can say how its jobs end
	run.State = ledger.Submitted
	if status.StartTime != nil {
		run.Created, run.Submitted = status.StartTime.Time, status.StartTime.Time
	}
	if status.LastChecked != nil {
		run.Checked = status.LastChecked.Time
	}
	run.Stop, run.Message = lifecycle.EarlyStop(status)
	run.Factory, run.FactoryIdle = int(status.Parallelism), ledger.IdleNotKnown
	run.Account, run.Usage = status.User, lifecycle.WriteUsage(status.Usage)
	if status.StartedAt != nil {
		run.Started = status.StartedAt.Time
		if ran, err := time.ParseDuration(status.Duration); err == nil {
			run.Finished = run.Started.Add(ran)
		}
	}
	if status.Phase == v1alpha1.PhaseSuspended {
		run.State, run.Stop, run.Reason = ledger.Removed, crosscheck.StopSuspended, crosscheck.StopSuspended
		run.Confirmed, run.Ended, run.Procs = true, c.Now(), max(job.Jobs()-max(run.Jobs-run.Procs, 0), run.Procs)
		if run.Cluster == 0 {
			return run, nil
		}
		return run, lifecycle.Ends(run, status)
	}
	if !status.Phase.Terminal() {
		return run, nil
	}
	run.Confirmed, run.Ended = !lifecycle.OwesOutput(status.Conditions), c.Now()
	if said := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFailed); said != nil &&
		said.Reason == crosscheck.StopDeadline {
		run.Stop, run.Message = crosscheck.StopDeadline, "spec.activeDeadlineSeconds have passed since the submission"
	}
	if status.CompletionTime != nil {
		run.Ended = status.CompletionTime.Time
	}
	if run.Cluster == 0 {
		run.State, run.Confirmed = ledger.Refused, true
		if said := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSubmitted); said != nil {
			run.Reason, run.Message = said.Reason, said.Message
		}
		return run, nil
	}
	return run, lifecycle.Ends(run, status)
}

// opens reports whether HTCondor has jobs of an intent that have not ended.
func (c *Controller) opens(ctx context.Context, job *v1alpha1.HTCJob, intent ledger.Run) (bool, error) {
	places, asked := []backend.Target{backend.TargetOf(intent)}, c.Now()
	all, err := c.sender.SearchAll(ctx, places, site.Tag(job, intent.Attempt).Constraint(), "")
	if err != nil {
		return false, fmt.Errorf("look for attempt %d: %w", intent.Attempt, err)
	}
	return c.sender.Opens(ctx, places, intent, all[0].Found, asked)
}

// restore records again, from the status, a run that the ledger has lost. A status that somebody has edited may tell of
// an attempt that followed, or of an end, while one that the ledger has as an intent is open: HTCondor knows.
func (c *Controller) restore(ctx context.Context, job *v1alpha1.HTCJob) error {
	if intent, err := c.latest(ctx, string(job.UID)); err == nil && intent.State == ledger.Intent {
		if open, err := c.opens(ctx, job, intent); err != nil {
			return err
		} else if open {
			return c.recover(ctx, job, &intent, intent.Attempt, part{})
		}
	} else if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	run, procs := c.remembered(job)
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		err := tx.InsertRun(run)
		if errors.Is(err, ledger.ErrExists) { // an older ledger may have it as an intent
			err = tx.UpdateIntent(run)
		}
		if err != nil {
			return err
		}
		if run.Cluster > 0 &&
			// a factory's procs get rows when they were made
			(run.Factory == 0 || run.Confirmed || !run.Ended.IsZero()) {
			if err := tx.InsertProcs(run, run.Procs); err != nil {
				return err
			}
		}
		if err := tx.RecallProcs(run, lifecycle.Kept(run, job.Status)); err != nil {
			return err
		}
		for _, p := range procs {
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		return recallParts(tx, job, run)
	})
	if errors.Is(err, ledger.ErrWentOn) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore attempt %d from the status: %w", run.Attempt, err)
	}
	c.Log.Warn().Str(
		"job",
		job.Namespace+"/"+job.Name,
	).Int(
		"attempt",
		run.Attempt,
	).Msg(
		"the ledger had lost this run; restored from the object's status",
	)
	if !run.Confirmed {
		c.checks.Add(run.UID)
	}
	c.fetcher.TakeUpAgain() // jobs that ended before a suspension, or of earlier attempts, may wait in the queue
	return nil
}
