package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/pool"
)

// remembered reconstructs the newest run of an HTCJob, which the ledger has lost, from the status. Its jobs were
// sent: whatever the schedd says now, they must not be sent again.
func (c *Controller) remembered(job *v1alpha1.HTCJob) (ledger.Run, []ledger.Proc) {
	status := job.Status
	run := c.newRun(job, int(status.Attempt))
	run.Generation, run.Procs = status.ObservedGeneration, int(status.Active+status.Succeeded+status.Failed)
	run.SpecHash, run.Rerun, run.InputsDigest, run.ItemsDigest = status.SpecHash, status.Rerun, status.InputsDigest, status.ItemsDigest
	// If the pool is no longer allowed, only the schedd's name is kept, so that no ticket is presented there.
	p, err := c.lostPool(job)
	if t, bad := p.Target(job, c.Site.Policy); err == nil && bad == nil {
		run = t.Of(run)
	}
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
	if status.Phase == v1alpha1.PhaseSuspended {
		run.State, run.Stop, run.Reason = ledger.Removed, crosscheck.StopSuspended, crosscheck.StopSuspended
		run.Confirmed, run.Ended, run.Procs = true, c.Now(), max(job.Jobs(), run.Procs)
		if run.Cluster == 0 {
			return run, nil
		}
		return run, endedProcs(run, status)
	}
	if !status.Phase.Terminal() {
		return run, nil
	}
	run.Confirmed, run.Ended = !owesOutput(status), c.Now()
	if said := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFailed); said != nil && said.Reason == crosscheck.StopDeadline {
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
	return run, endedProcs(run, status)
}

// owesOutput reports whether output of an ended run had not been fetched, or not been pushed, when its status was written. Then
// HTCondor is asked once more how its jobs ended, and the output of those that ended by themselves is fetched.
func owesOutput(status v1alpha1.HTCJobStatus) bool {
	owed := func(kind string, settled ...string) bool {
		said := meta.FindStatusCondition(status.Conditions, kind)
		return said != nil && said.Status != metav1.ConditionTrue && !slices.Contains(settled, said.Reason)
	}
	return owed(v1alpha1.ConditionOutputFetched, lifecycle.ReasonGivenUp, lifecycle.ReasonIncomplete) ||
		owed(v1alpha1.ConditionOutputsPushed, lifecycle.ReasonNotPushed)
}

// endedProcs returns an end for every proc of an ended run: first those that the status lists by job id, then as many more as
// its counts say. If output is missing, the ends count only as callbacks, which HTCondor may correct.
func endedProcs(run ledger.Run, status v1alpha1.HTCJobStatus) []ledger.Proc {
	source := crosscheck.FromHTCondor
	if !run.Confirmed {
		source = crosscheck.FromCallback
	}
	procs := make([]ledger.Proc, run.Procs)
	for i := range procs {
		procs[i] = ledger.Proc{
			UID: run.UID, Attempt: run.Attempt, Proc: i, Status: ledger.StatusSucceeded,
			Reason: "Completed", Source: source, Changed: run.Ended,
		}
	}
	failed := int(status.Failed)
	fail := func(p *ledger.Proc, reason, message string) {
		p.Status, p.Reason, p.Message = ledger.StatusFailed, reason, message
		failed--
	}
	for _, f := range status.Failures {
		_, number, _ := strings.Cut(f.JobID, ".")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(procs) && failed > 0 {
			fail(&procs[i], f.Reason, f.Message)
			procs[i].ExitCode, procs[i].Signal, procs[i].Stderr = intOrNil(f.ExitCode), intOrNil(f.Signal), f.Stderr
		}
	}
	stopped := run.Procs - int(status.Active+status.Succeeded+status.Failed) // if the run was suspended
	for i := len(procs) - 1; i >= 0 && stopped > 0; i-- {
		if p := &procs[i]; p.Status == ledger.StatusSucceeded {
			p.Status, p.Reason, p.Message = ledger.StatusFailed, crosscheck.StopSuspended, crosscheck.RemoveReason(crosscheck.StopSuspended)
			stopped--
		}
	}
	for i := range procs {
		if failed > 0 && procs[i].Status == ledger.StatusSucceeded {
			fail(&procs[i], "Forgotten", "failed; which of the jobs did was lost with the ledger")
		}
	}
	return procs
}

// restore records again, from the status, a run that the ledger has lost.
func (c *Controller) restore(ctx context.Context, job *v1alpha1.HTCJob) error {
	run, procs := c.remembered(job)
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		err := tx.InsertRun(run)
		if errors.Is(err, ledger.ErrExists) { // an older ledger may have it as an intent
			err = updateIntent(tx, run)
		}
		if err != nil {
			return err
		}
		if run.Cluster > 0 {
			if err := tx.InsertProcs(run, run.Procs); err != nil {
				return err
			}
		}
		for _, p := range procs {
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		return recallParts(tx, job, run)
	})
	if errors.Is(err, errWentOn) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore attempt %d from the status: %w", run.Attempt, err)
	}
	c.Log.Warn().Str("job", job.Namespace+"/"+job.Name).Int("attempt", run.Attempt).Msg("the ledger had lost this run; restored from the object's status")
	if !run.Confirmed {
		c.checks.Add(run.UID)
	}
	if run.State == ledger.Removed {
		c.fetcher.TakeUpAgain() // output of jobs that ended before the suspension may wait in the queue
	}
	return nil
}

func intOrNil(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}
