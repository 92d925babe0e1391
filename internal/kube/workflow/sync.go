package workflow

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
)

// syncOne is sync with its back-off.
func (c *Controller) syncOne(ctx context.Context, key string) {
	err := c.sync(ctx, key)
	if err == nil {
		c.queue.Forget(key)
		return
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		c.Log.Warn().Err(err).Str("workflow", key).Msg("status not written, trying again")
	}
	c.queue.AddRateLimited(key)
}

// get returns the workflow as last seen or written, nil if it is gone. It is shared: copy before changing.
func (c *Controller) get(key string) *v1alpha1.HTCWorkflow {
	object, found, err := c.cache.GetByKey(key)
	if err != nil || !found {
		return nil
	}
	return object.(*v1alpha1.HTCWorkflow)
}

// uid returns that of the workflow that has a name now, "" if there is none.
func (c *Controller) uid(key string) string {
	if w := c.get(key); w != nil {
		return string(w.UID)
	}
	return ""
}

// sync updates the status of one workflow and queues what only HTCondor can do. It may run at any time, any number of times.
func (c *Controller) sync(ctx context.Context, key string) error {
	c.syncing.LockKey(key) // otherwise an older status might be written last, or the same Event twice
	defer func() { _ = c.syncing.UnlockKey(key) }()
	w := c.get(key)
	if w == nil {
		return c.syncGone(ctx, key)
	}
	s, err := c.gather(ctx, w)
	if err != nil {
		return err
	}
	d, known := Plan(s), c.memory.Of(key)
	inTheWay := known.Blockers[reconciler.Acting]
	if d.Action != Rest && (inTheWay == nil || c.Now().After(inTheWay.Retry)) {
		c.actions.Add(key)
	}
	switch {
	case d.Action == Submit && w.Status.ObservedGeneration == 0 && inTheWay == nil:
		// Usually its DAG's id is known by then.
		if wait := c.memory.UntilFirstWrite(key, c.Now(), reconciler.BetweenWrites); wait > 0 {
			c.queue.AddAfter(key, wait)
			return nil
		}
	case d.Action == Rest:
		if s.Orphans && inTheWay == nil {
			c.actions.Add(key)
		}
		if w.DeletionTimestamp != nil {
			return nil
		}
	}
	if dag := s.newest(); s.Unfetched && dag.settled() && known.Blockers[reconciler.Fetching] == nil {
		c.fetches.Add(key)
	}
	if s.toMeasure(known) {
		c.measures.Add(key)
	}
	if at := s.partAt(known.Kind.part, known.Kind.parted); !at.IsZero() && known.Blockers[reconciler.Fetching] == nil {
		if wait := at.Sub(c.Now()); wait > 0 {
			c.queue.AddAfter(key, wait)
		} else {
			c.fetches.Add(key)
		}
	}
	v := view{decision: d, backend: c.Answering.State(c.backendOf(ctx, key)), now: c.Now()}
	if fresh, known := c.freshness.Of(string(w.UID)); known {
		v.fresh = &fresh
	}
	if dag := s.newest(); dag != nil {
		v.match = c.Matching.Of(dag.Run.UID, dag.Run.Attempt)
	}
	if inTheWay != nil {
		v.blocker = &inTheWay.Blocker
	}
	if known.Blockers[reconciler.Fetching] != nil {
		v.unfetched = &known.Blockers[reconciler.Fetching].Blocker
	}
	if known.Blockers[reconciler.Pushing] != nil {
		v.unpushed = &known.Blockers[reconciler.Pushing].Blocker
	}
	written, err := c.report(ctx, s, v)
	if err != nil {
		return err
	}
	if at := s.expiry(); !written && !at.IsZero() && !c.Now().Before(at) {
		return c.expire(ctx, s)
	}
	if wait := d.At.Sub(c.Now()); !d.At.IsZero() && wait > 0 {
		c.queue.AddAfter(key, wait)
	}
	return nil
}

// syncGone queues the removal of a vanished workflow if the ledger still has DAGs of it.
func (c *Controller) syncGone(ctx context.Context, key string) error {
	runs, err := c.runsOf(ctx, key)
	switch b := c.memory.Of(key).Blockers[reconciler.Acting]; {
	case err != nil:
		return err
	case len(runs) == 0:
		c.memory.Forget(key)
		c.orphans.Deletions.Forget(key)
	case b == nil || c.Now().After(b.Retry):
		c.actions.Add(key)
	}
	return nil
}

// report writes the status and the Events of what happened. It returns whether there was a difference.
func (c *Controller) report(ctx context.Context, s Situation, v view) (differs bool, err error) {
	w, status := s.Workflow, newStatus(s, v)
	if equality.Semantic.DeepEqual(status, w.Status) {
		return false, nil
	}
	key := w.Namespace + "/" + w.Name
	if onlyChecked(w.Status, status) && (status.Phase.Terminal() || status.LastChecked.Sub(w.Status.LastChecked.Time) < crosscheck.BetweenChecks) {
		return false, nil
	}
	if wait := c.memory.UntilWrite(key, v.now, reconciler.BetweenWrites); wait > 0 && status.Phase == w.Status.Phase {
		c.queue.AddAfter(key, wait)
		return true, nil
	}
	written, err := c.Objects.SetStatus(ctx, w, status)
	if err != nil {
		return true, fmt.Errorf("write status: %w", err)
	}
	c.cache.Mutation(written)
	c.memory.Wrote(key, v.now)
	for _, e := range happened(w.Status, status, s) {
		if e.Warning {
			c.Events.Warning(w, e.Reason, e.Message)
		} else {
			c.Events.Normal(w, e.Reason, e.Message)
		}
	}
	return true, nil
}

// onlyChecked reports whether two statuses differ only in when HTCondor was last asked.
func onlyChecked(before, after v1alpha1.HTCWorkflowStatus) bool {
	if before.LastChecked == nil || after.LastChecked == nil {
		return false
	}
	before.LastChecked = after.LastChecked
	return equality.Semantic.DeepEqual(before, after)
}

// expire deletes an expired workflow only if it is unchanged since that was decided.
func (c *Controller) expire(ctx context.Context, s Situation) error {
	c.Events.Normal(s.Workflow, "Expired", fmt.Sprintf("deleted %s after its end", lifecycle.Plural(int(*s.ttl()), "second")))
	err := c.Objects.Delete(ctx, s.Workflow)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another sync follows
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
