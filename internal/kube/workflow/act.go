package workflow

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/orphans"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
)

// actOne is act with its back-off; it reports what blocks an action to the user.
func (c *Controller) actOne(ctx context.Context, key string) {
	err := c.act(ctx, key)
	defer c.queue.Add(key)
	if err == nil || errors.Is(err, inputs.ErrStopped) { // another action follows the change
		c.actions.Forget(key)
		c.memory.Unblock(key, reconciler.Acting)
		return
	}
	if pause, ok := errors.AsType[*sending.Waiting](err); ok {
		c.actions.Forget(key)
		b := reconciler.Blocked("", cmp.Or(pause.Reason, "AskingSchedd"), pause.Message)
		b.Retry = c.Now().Add(pause.After)
		c.memory.Wait(key, b)
		c.actions.AddAfter(key, pause.After)
		return
	}
	b := explain(err)
	after := min(firstRetry<<min(c.actions.NumRequeues(key), 10), lastRetry)
	pause, own := errors.AsType[*sending.Paused](err)
	if own {
		after = pause.After
	}
	b.Retry = c.Now().Add(after)
	if c.memory.Block(key, reconciler.Acting, b) {
		c.Log.Warn().Err(err).Str("workflow", key).Str("reason", b.Reason).Dur("retry", after).Msg("not done yet")
		c.warn(key, b.Reason, b.Message)
	}
	if own {
		c.actions.AddAfter(key, after)
		return
	}
	c.actions.AddRateLimited(key)
}

// explain turns an error of an action into a message for the user.
func explain(err error) reconciler.Blocker {
	if e, waits := errors.AsType[*inputs.Waiting](err); waits {
		return reconciler.Blocked(v1alpha1.ConditionInputsReady, e.Reason, e.Message)
	}
	if e, lost := errors.AsType[*lostError](err); lost {
		return reconciler.Blocked(v1alpha1.ConditionSubmitted, reasonLedgerLost, e.Error())
	}
	if e, is := errors.AsType[*artifact.Unusable](err); is {
		return reconciler.Blocked(v1alpha1.ConditionOutputsPushed, e.Reason, err.Error())
	}
	b, endpoint := sending.Explain(err)
	return reconciler.Blocker{Blocker: b, Endpoint: endpoint}
}

func (c *Controller) warn(key, reason, message string) {
	if w := c.get(key); w != nil {
		c.Events.Warning(w, reason, message)
	}
}

// act decides again from the present ledger and does what needs HTCondor.
func (c *Controller) act(ctx context.Context, key string) error {
	w := c.get(key)
	if w == nil {
		return c.sweep(ctx, key)
	}
	s, err := c.gather(ctx, w)
	if err != nil {
		return err
	}
	d := Plan(s)
	if s.Orphans {
		// Kept orphans do not hold up the deletion of a workflow of the same name.
		if err := c.sweep(ctx, key); err != nil && !(orphans.IsKept(err) && d.Action == Remove) {
			return err
		}
	}
	switch d.Action {
	case Submit:
		return c.submit(ctx, w, s, d)
	case Recover:
		return c.recover(ctx, w, s)
	case Stop:
		return c.stop(ctx, w, s, d)
	case Resize:
		return c.resize(ctx, w, s)
	case Settle:
		return c.settle(ctx, s.newest().Run)
	case Remove:
		return c.finalize(ctx, w)
	}
	return nil
}

// runsOf lists the DAGs that the ledger has under the name of a workflow.
func (c *Controller) runsOf(ctx context.Context, key string) ([]ledger.Run, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	var runs []ledger.Run
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		runs, err = tx.Runs(ledger.RunFilter{Kind: ledger.Workflows, Namespace: namespace, Name: name})
		return err
	})
	return runs, err
}

// retryNow ends the back-off of every workflow that is blocked in such a way.
func (c *Controller) retryNow(such func(reconciler.Blocker) bool) {
	for key := range c.memory.Blocked(reconciler.Acting, such) {
		c.actions.Forget(key)
		c.actions.Add(key)
	}
}

// Turned continues with what waits for a schedd that answers again, or for credentials.
func (c *Controller) Turned() {
	c.retryNow(func(b reconciler.Blocker) bool {
		return b.Condition == v1alpha1.ConditionBackendReachable || b.Condition == v1alpha1.ConditionCredentials
	})
}
