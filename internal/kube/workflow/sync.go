package workflow

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify/traces"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// current is a workflow as it was gathered, and what is decided about it.
type current struct {
	*Controller
	key string
	s   Situation
	d   Decision
}

func (k kind) Gather(
	ctx context.Context, w *v1alpha1.HTCWorkflow,
) (reconciler.Case[*v1alpha1.HTCWorkflow, v1alpha1.HTCWorkflowStatus], error) {
	s, err := k.gather(ctx, w)
	if err != nil {
		return nil, err
	}
	return current{k.Controller, w.Namespace + "/" + w.Name, s, Plan(s)}, nil
}

// Step implements reconciler.Case, as do the methods below.
func (c current) Step() reconciler.Step {
	w, class := c.s.Workflow, classOf(c.d.Action)
	step := reconciler.Step{
		Class: class, Orphans: c.s.Orphans, Resumes: c.d.Action == Recover, Again: c.d.At,
		First: c.d.Action == Submit && w.Status.ObservedGeneration == 0,
	}
	if c.d.Action != Rest {
		step.Do = func(ctx context.Context) (reconciler.Class, error) { return class, c.do(ctx, w, c.s, c.d) }
	}
	return step
}

func (c current) Follow(ctx context.Context) error {
	dag := c.s.newest()
	switch deleted := c.s.Workflow.DeletionTimestamp != nil; {
	case deleted && c.d.Action == Rest:
		return nil
	case deleted: // nobody wants its output or its results
		return c.KeepQuota(ctx, c.s.together(), c.s.demand)
	}
	known := c.Memory.Of(c.key)
	fetchable := known.Blockers[reconciler.Fetching] == nil
	if c.s.Unfetched && dag.settled() && fetchable {
		c.fetches.Add(c.key)
	}
	if c.s.toMeasure(known) {
		c.measures.Add(c.key)
	}
	if at := c.s.partAt(known.Kind.part, known.Kind.parted); !at.IsZero() && fetchable {
		if wait := at.Sub(c.Now()); wait > 0 {
			c.Changed.AddAfter(c.key, wait)
		} else {
			c.fetches.Add(c.key)
		}
	}
	if dag != nil && dag.waits() {
		if wait := dag.Run.Submitted.Add(schedd.StartsWithin).Sub(c.Now()); wait > 0 {
			c.Changed.AddAfter(c.key, wait)
		}
	}
	return c.KeepQuota(ctx, c.s.together(), c.s.demand)
}

func (c current) Object() (*v1alpha1.HTCWorkflow, v1alpha1.HTCWorkflowStatus) {
	return c.s.Workflow, c.s.Workflow.Status
}

func (c current) Status(blockers reconciler.Blockers, now time.Time) v1alpha1.HTCWorkflowStatus {
	var run *ledger.Run
	at := c.NextEndpoint(c.s.Workflow)
	if dag := c.s.newest(); dag != nil {
		run, at = &dag.Run, backend.TargetOf(dag.Run).Endpoint
	}
	return newStatus(c.s, c.View(c.s.Workflow, run, at, c.freshness, blockers, now))
}

// Delay implements reconciler.Case. The time of the last check alone is not worth a write soon after another.
func (c current) Delay(before, after v1alpha1.HTCWorkflowStatus) (pause time.Duration, worth bool) {
	if onlyChecked(before, after) &&
		(after.Phase.Terminal() || after.LastChecked.Sub(before.LastChecked.Time) < crosscheck.BetweenChecks) {
		return 0, false
	}
	if after.Phase != before.Phase {
		return 0, true
	}
	return reconciler.BetweenWrites, true
}

func (c current) Events(before, after v1alpha1.HTCWorkflowStatus) []lifecycle.Event {
	return happened(before, after, c.s)
}

func (c current) Trace(before, after v1alpha1.HTCWorkflowStatus, handed reconciler.Handed) *traces.Trace {
	of := lifecycle.TracedOf(after)
	if len(c.s.DAGs) == 0 || !lifecycle.Ended(lifecycle.TracedOf(before), of) {
		return nil
	}
	return traceOf(c.s, of, handed)
}

func (c current) Expiry() (at time.Time, why string) {
	if at = c.s.expiry(); at.IsZero() {
		return at, ""
	}
	return at, fmt.Sprintf("deleted %s after its end", lifecycle.Plural(int(*c.s.ttl()), "second"))
}

// onlyChecked reports whether two statuses differ only in when HTCondor was last asked.
func onlyChecked(before, after v1alpha1.HTCWorkflowStatus) bool {
	if before.LastChecked == nil || after.LastChecked == nil {
		return false
	}
	before.LastChecked = after.LastChecked
	return equality.Semantic.DeepEqual(before, after)
}
