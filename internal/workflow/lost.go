package workflow

import (
	"context"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/recovery"
	"htc.cern.ch/htcd/internal/schedd"
)

// reasonLedgerLost is that of a workflow of which the ledger knows less than its status.
const reasonLedgerLost = "LedgerLost"

// lostError: the ledger lacks DAGs of a workflow, and only somebody can say what to do.
type lostError struct{ found string }

func (e *lostError) Error() string {
	return fmt.Sprintf("htcd's ledger has lost what was sent for this HTCWorkflow (%s): nothing is sent in addition, and what is in HTCondor goes on there; "+
		"take the output that you need, delete this HTCWorkflow, which removes its jobs, and apply it again", e.found)
}

// lost reports whether the ledger knows less of a workflow than its status, which is written later: the ledger, or a part of it, was lost.
func (s Situation) lost() bool {
	status, sent := s.Workflow.Status, 0
	for _, d := range s.DAGs {
		if d.Run.Cluster > 0 {
			sent++
		}
	}
	return slices.Contains(s.Workflow.Finalizers, v1alpha1.Finalizer) &&
		(int(status.Attempt) > s.Attempt || int(status.Attempt) == s.Attempt && len(status.JobID) > sent)
}

// dueAfterLoss reports whether an ended workflow that the ledger has lost is to be run again.
func (s Situation) dueAfterLoss() bool {
	w := s.Workflow
	return w.Rerun() != "" && w.Rerun() != w.Status.Rerun || w.SpecHash() != w.Status.SpecHash
}

// recoverLost begins a workflow that has our finalizer but no row: htcd ended between the two, or the ledger was lost. As long as the
// schedd has a DAG of it, or the status tells of one, nothing is sent in addition. Its only DAG is adopted if it was made from the present spec:
// the nodes follow from that.
func (c *Controller) recoverLost(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation) error {
	status := w.Status
	switch {
	case status.Phase.Terminal() || status.Phase == v1alpha1.PhaseSuspended:
		return &lostError{fmt.Sprintf("attempt %d is %s", status.Attempt, status.Phase)}
	case len(s.DAGs) > 0 || status.Attempt > 1 || len(status.JobID) > 1:
		return &lostError{fmt.Sprintf("attempt %d, of which there are DAGs %v", status.Attempt, status.JobID)}
	}
	p, err := c.pools.New(asJob(w))
	if err != nil {
		return err
	}
	t, id, err := c.choose(ctx, w, p)
	if err == nil && status.Schedd != "" && status.Schedd != t.Endpoint.Schedd {
		t.Endpoint.Schedd = status.Schedd
		id, err = c.Credentials.Identity(ctx, t)
	}
	if err != nil {
		return err
	}
	found, err := c.sender.Search(ctx, t, id, schedd.UIDConstraint(string(w.UID)), "")
	if err != nil {
		return fmt.Errorf("look for lost DAGs: %w", err)
	}
	if n := found.Newest(); n > 1 {
		return &lostError{fmt.Sprintf("the schedd has its DAG %d", n)}
	}
	f, err := c.sender.Judge(ctx, t, tag(w, 1), found)
	switch {
	case err != nil:
		return err
	case f.Verdict != recovery.Absent:
		return c.adoptLost(ctx, w, s, t, f)
	case len(status.JobID) > 0:
		return &lostError{fmt.Sprintf("neither the queue nor the history of the schedd shows its DAG %s", status.JobID[0])}
	}
	if err := c.sender.Missing(ledger.Run{UID: string(w.UID)}, c.Now()); err != nil {
		return err
	}
	c.absences.Clear(string(w.UID))
	return c.submit(ctx, w, s, Decision{Action: Submit, Again: true})
}

// adoptLost records the first DAG of a workflow, with its nodes, again.
func (c *Controller) adoptLost(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation, t backend.Target, f recovery.Finding) error {
	is := fmt.Sprintf("the schedd has its DAG %d.0", f.Cluster.ID)
	if f.SpecHash != w.SpecHash() {
		return &lostError{is + ", of an earlier spec"}
	}
	run := c.newRun(w, s, Decision{Again: true})
	p, err := c.prepare(ctx, w, s, 0, run, nil)
	if schedd.KindOf(err) == schedd.Refused || err == nil && p.digest != w.Status.ItemsDigest {
		return &lostError{is + ", of an earlier table or an earlier htcd"}
	}
	if err != nil {
		return err
	}
	if run = p.pool.Sends(t.Of(run), p.pool.Effective(schedd.Requests{})); run.Pool != f.Pool {
		run.Pool, run.PoolSpec, run.Effective = f.Pool, "", ""
	}
	run.ItemsDigest, run.Restored, run.Submitted = p.digest, true, f.Since(c.Now())
	if w.Status.Attempt > 0 {
		run.Rerun = w.Status.Rerun // the annotation may have changed since
	}
	begun, err := c.begin(ctx, w, run, p)
	if err != nil || !begun {
		return err
	}
	c.Log.Info().Str("workflow", keyOf(run)).Int("cluster", f.Cluster.ID).Msg("adopted: the ledger had lost it")
	c.Observer.Repaired(crosscheck.Adopted)
	if err := c.recordCluster(ctx, w, run, f.Cluster); err != nil {
		return err
	}
	c.checks.Add(keyOf(run))
	return nil
}
