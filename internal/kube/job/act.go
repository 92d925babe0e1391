package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
)

// actOne is act with its back-off; it reports what blocks an action to the user.
func (c *Controller) actOne(ctx context.Context, e reconciler.Class, key string) {
	if !c.actions.Claim(key, c.Now()) {
		return
	}
	needs, err := c.act(ctx, e, key)
	// An HTCJob blocked for another reason must not keep its place ahead of others.
	_, waits := errors.AsType[*admission.Waits](err)
	if !waits {
		c.admission.Leave(key)
	}
	c.actions.Release(key)
	if errors.Is(err, inputs.ErrStopped) {
		err = nil // what to do now is decided again
	}
	if needs != e && err == nil {
		c.actions.add(needs, key)
		return
	}
	defer c.queue.Add(key)
	if err == nil {
		c.actions.forget(key)
		c.memory.Unblock(key, reconciler.Acting)
		c.admission.Wake()
		return
	}
	if pause, ok := errors.AsType[*sending.Waiting](err); ok {
		c.actions.forget(key)
		b := reconciler.Blocked("", cmp.Or(pause.Reason, "AskingSchedd"), pause.Message)
		b.Class, b.Retry = e, c.Now().Add(pause.After)
		c.memory.Wait(key, b)
		c.actions.addAfter(e, key, pause.After)
		return
	}
	if c.awaitInput(e, key, err) {
		return
	}
	pause, own := errors.AsType[*sending.Paused](err)
	after := min(firstRetry<<min(c.actions.tries(e, key), 10), lastRetry)
	switch {
	case own:
		after = pause.After
	case waits:
		after = lastRetry
	}
	t := explain(err)
	t.Class, t.Retry = e, c.Now().Add(after)
	if c.memory.Block(key, reconciler.Acting, t) {
		c.Log.Warn().Err(err).Str("job", key).Str("reason", t.Reason).Dur("retry", after).Msg("not done yet")
		c.warn(key, t.Reason, t.Message)
	}
	if waits {
		return // it is woken
	}
	if own {
		c.actions.addAfter(e, key, after)
		return
	}
	c.actions.again(e, key)
}

// act decides again from the present ledger and does what needs HTCondor if it is of this class. Otherwise it
// does nothing and returns the class that is needed.
func (c *Controller) act(ctx context.Context, e reconciler.Class, key string) (needs reconciler.Class, err error) {
	job := c.get(key)
	if job == nil {
		if e != reconciler.Deleting {
			return reconciler.Deleting, nil
		}
		return e, c.sweep(ctx, key)
	}
	s, err := c.gather(ctx, job)
	if err != nil {
		return e, err
	}
	d := lifecycle.Plan(s)
	if tooEarly(s, d) {
		if e == reconciler.Asking {
			return classOf(d.Action), c.confirm(ctx, *s.Run)
		}
		return reconciler.Asking, nil
	}
	if needs := classOf(d.Action); d.Action != lifecycle.Rest && needs != e {
		return needs, nil
	}
	if s.Orphans {
		// A deletion does not wait for an administrator's decision about another object of the same name.
		if err := c.sweep(ctx, key); err != nil && !(orphans.IsKept(err) && d.Action == lifecycle.Remove) {
			return e, err
		}
	}
	return e, c.do(ctx, s.Job, s, d)
}

// tooEarly reports whether an attempt is about to begin although only callbacks say that the previous one has ended. HTCondor
// may have put one of its jobs on hold since, or run it again, and both attempts would be under way.
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
	return &sending.Waiting{After: firstRetry, Message: fmt.Sprintf("HTCondor has not confirmed yet that attempt %d has ended", run.Attempt)}
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
		return c.finalize(ctx, job)
	case lifecycle.Stop:
		return c.stop(ctx, job, s, d)
	case lifecycle.Cancel:
		return c.cancel(ctx, job, s)
	}
	return nil
}

// runsOf lists the runs that the ledger has under the name of an HTCJob.
func (c *Controller) runsOf(ctx context.Context, key string) ([]ledger.Run, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", key, err)
	}
	var runs []ledger.Run
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.Runs(ledger.RunFilter{Namespace: namespace, Name: name})
		return err
	})
	return runs, err
}
