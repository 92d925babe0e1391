package workflow

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd"
)

// Sync updates the status of one workflow and queues what only HTCondor can do. It may run at any time, any number of
// times.
func (k kind) Sync(ctx context.Context, key string, w *v1alpha1.HTCWorkflow) error {
	s, err := k.gather(ctx, w)
	if err != nil {
		return err
	}
	d, known := Plan(s), k.Memory.Of(key)
	inTheWay := known.Blockers[reconciler.Acting]
	if d.Action != Rest && (inTheWay == nil || k.Now().After(inTheWay.Retry)) {
		k.Actions.Add(classOf(d.Action), key)
	}
	switch {
	case d.Action == Submit && w.Status.ObservedGeneration == 0 && inTheWay == nil:
		// Usually its DAG's id is known by then.
		if wait := k.Memory.UntilFirstWrite(key, k.Now(), reconciler.BetweenWrites); wait > 0 {
			k.Changed.AddAfter(key, wait)
			return nil
		}
	case d.Action == Rest:
		if s.Orphans && inTheWay == nil {
			k.Actions.Add(classOf(d.Action), key)
		}
		if w.DeletionTimestamp != nil {
			return nil
		}
	}
	if dag := s.newest(); s.Unfetched && dag.settled() && known.Blockers[reconciler.Fetching] == nil {
		k.fetches.Add(key)
	}
	if s.toMeasure(known) {
		k.measures.Add(key)
	}
	if at := s.partAt(known.Kind.part, known.Kind.parted); !at.IsZero() && known.Blockers[reconciler.Fetching] == nil {
		if wait := at.Sub(k.Now()); wait > 0 {
			k.Changed.AddAfter(key, wait)
		} else {
			k.fetches.Add(key)
		}
	}
	v := view{decision: d, backend: k.Answering.State(k.backendOf(ctx, key)), now: k.Now()}
	if fresh, known := k.freshness.Of(string(w.UID)); known {
		v.fresh = &fresh
	}
	if dag := s.newest(); dag != nil {
		v.match = k.Matching.Of(dag.Run.UID, dag.Run.Attempt)
		if wait := dag.Run.Submitted.Add(schedd.StartsWithin).Sub(k.Now()); dag.waits() && wait > 0 {
			k.Changed.AddAfter(key, wait)
		}
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
	written, err := k.report(ctx, s, v)
	if err != nil {
		return err
	}
	if at := s.expiry(); !written && !at.IsZero() && !k.Now().Before(at) {
		return k.Expire(ctx, w, fmt.Sprintf("deleted %s after its end", lifecycle.Plural(int(*s.ttl()), "second")))
	}
	if wait := d.At.Sub(k.Now()); !d.At.IsZero() && wait > 0 {
		k.Changed.AddAfter(key, wait)
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
	if onlyChecked(w.Status, status) &&
		(status.Phase.Terminal() || status.LastChecked.Sub(w.Status.LastChecked.Time) < crosscheck.BetweenChecks) {
		return false, nil
	}
	if wait := c.Memory.UntilWrite(key, v.now, reconciler.BetweenWrites); wait > 0 && status.Phase == w.Status.Phase {
		c.Changed.AddAfter(key, wait)
		return true, nil
	}
	written, err := c.Objects.SetStatus(ctx, w, status)
	if err != nil {
		return true, fmt.Errorf("write status: %w", err)
	}
	c.Written(w, written, v.now, happened(w.Status, status, s))
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
