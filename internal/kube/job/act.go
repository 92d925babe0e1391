package job

import (
	"context"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
)

// kind tells the reconciler what is particular to HTCJobs.
type kind struct{ *Controller }

// AsJob implements reconciler.Owned, as do the methods below reconciler.Kind.
func (kind) AsJob(job *v1alpha1.HTCJob) *v1alpha1.HTCJob { return job }

func (k kind) Gone(key string) {
	k.admission.Withdraw(key)
	k.waiters.Forget(key)
}

func (k kind) Seen(before, now *v1alpha1.HTCJob) {
	k.sourceChanged(before, now)
	reconciler.Outdate(k.engine, before, now)
	if now == nil {
		k.secrets.Add(before.Namespace)
	}
}

func (kind) Ended(job *v1alpha1.HTCJob) bool { return job.Status.Phase.Terminal() }

// Acted lets go of the place in the line of a pool unless it is kept: an HTCJob blocked for another reason must not
// keep its place ahead of others. What waits in the line is woken.
func (k kind) Acted(key string, err error) (woken bool) {
	if _, waits := errors.AsType[*admission.Waits](err); waits {
		return true
	}
	k.admission.Leave(key)
	if err == nil {
		k.admission.Wake()
	}
	if w, waits := errors.AsType[*inputs.Waiting](err); waits {
		k.waiters.Miss(key, w.Input)
	}
	return false
}

// tooEarly reports whether an attempt is about to begin although only callbacks say that the previous one has ended.
// HTCondor may have put one of its jobs on hold since, or run it again, and both attempts would be under way.
func tooEarly(s lifecycle.Situation, d lifecycle.Decision) bool {
	begins := d.Action == lifecycle.Submit || d.Action == lifecycle.Recover
	return begins && s.Run != nil && s.Run.Attempt < d.Attempt && s.Run.State == ledger.Submitted && !s.Run.Confirmed
}

// confirm asks HTCondor how the jobs of a run ended. It returns nil when HTCondor has confirmed the end of all of them.
func (c *Controller) confirm(ctx context.Context, run ledger.Run) error {
	if _, err := c.checkRun(ctx, run.UID); err != nil {
		return fmt.Errorf("ask how attempt %d ended: %w", run.Attempt, err)
	}
	_, over, err := c.latestOpen(ctx, run.UID)
	if err != nil || over {
		return err
	}
	return &sending.Waiting{
		After:   reconciler.FirstRetry,
		Message: fmt.Sprintf("HTCondor has not confirmed yet that attempt %d has ended", run.Attempt),
	}
}

// do carries out a decision.
func (c *Controller) do(ctx context.Context, job *v1alpha1.HTCJob, s lifecycle.Situation, d lifecycle.Decision) error {
	switch d.Action {
	case lifecycle.Submit:
		return c.submit(ctx, job, s, d.Attempt)
	case lifecycle.Recover:
		var some part
		if s.Run != nil && s.Run.Attempt != d.Attempt {
			var err error
			if some, err = c.partOf(ctx, s); err != nil {
				return err
			}
			s.Run = nil
		}
		return c.recover(ctx, job, s.Run, d.Attempt, some)
	case lifecycle.Restore:
		return c.restore(ctx, job)
	case lifecycle.Remove:
		return reconciler.Finalize(ctx, c.engine, job)
	case lifecycle.Stop:
		return c.stop(ctx, job, s, d)
	case lifecycle.Cancel:
		return c.cancel(ctx, job, s)
	case lifecycle.Pace:
		return c.pace(ctx, s)
	}
	return nil
}
