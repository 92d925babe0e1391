package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

// recover finds out what became of a DAG that may or may not have been sent.
func (c *Controller) recover(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation) error {
	if n := s.newest(); n == nil || n.Run.State != ledger.Intent {
		return c.recoverLost(ctx, w, s)
	}
	run := s.newest().Run
	t := backend.TargetOf(run)
	id, err := c.Credentials.Identity(ctx, t)
	if err != nil {
		return err
	}
	if c.Tries.Get(run).Unsent {
		return c.goOn(ctx, w, s)
	}
	found, err := c.sender.Search(ctx, t, id, tag(w, run.Attempt).Constraint(), c.Tries.Get(run).Since)
	if err != nil {
		return fmt.Errorf("look for DAG %d: %w", run.Attempt, err)
	}
	if s.lost() && s.toldItsEnd() {
		open, err := c.sender.Opens(ctx, []backend.Target{t}, run, found, c.Now())
		if err != nil {
			return err
		}
		if !open { // the status stands
			c.Memory.Change(keyOf(run), func(r *record) { r.Kind.sought = recovery.KeyOf(run) })
			return nil
		}
	}
	f, err := c.sender.Judge(ctx, t, tag(w, run.Attempt), found)
	if err != nil {
		return err
	}
	if f.Verdict == recovery.Absent {
		if s.lost() &&
			!slices.ContainsFunc(found.Unstaged, func(j condor.Job) bool { return speaksOf(w, j) }) { // it was sent
			return &lostError{
				fmt.Sprintf("neither the queue nor the history of the schedd shows its DAG %d", run.Attempt),
			}
		}
		if err := c.sender.Missing(ctx, []backend.Target{t}, run, c.Now()); err != nil {
			return err
		}
		return c.goOn(ctx, w, s)
	}
	c.Log.Info().Str("workflow", keyOf(run)).Int("cluster", f.Cluster.ID).Msg("adopted")
	c.Observer.Repaired(crosscheck.Adopted, 1)
	run.Submitted = f.Since(c.Now())
	if err := c.recordCluster(ctx, w, run, f.Cluster); err != nil {
		return err
	}
	c.checks.Add(keyOf(run))
	return nil
}

// goOn sends a DAG that the schedd does not have, unless it should no longer be sent. The sandbox and the token are
// new, and the schedd is chosen again; the nodes are those of its rows.
func (c *Controller) goOn(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation) error {
	if fresh, err := reconciler.Fresh(ctx, c.engine, w); err != nil || !fresh {
		return err
	}
	run := s.newest().Run
	if s.waits() || s.changed() {
		return c.sender.Withdraw(ctx, run)
	}
	if s.overdue() {
		return c.sender.GiveUp(ctx, run, crosscheck.StopDeadline, lifecycle.DeadlinePassed(s.activeDeadline()))
	}
	token, hash := notify.NewToken()
	run.TokenHash = hash
	p, err := c.prepare(ctx, w, s, s.level(*s.newest()), run, &run)
	if err != nil {
		return c.sender.Refuse(ctx, run, err)
	}
	t, id, err := c.Choose(ctx, asJob(w), p.pool, c.Site.Policy)
	if err != nil {
		return err
	}
	if err := c.Limits.Ask(id, 1, c.Now()); err != nil {
		return err
	}
	leave, err := c.stageInputs(ctx, w, p, &run)
	if err != nil {
		return c.sender.Refuse(ctx, run, err)
	}
	defer leave()
	again := p.pool.Sends(t.Of(run), p.pool.Effective(submit.Requests{}))
	again.Factory = p.sandbox.Factory
	err = c.Ledger.Write(
		ctx,
		func(tx *ledger.Tx) error { return errors.Join(tx.UpdateIntent(again), p.pool.Record(tx)) },
	)
	if err != nil {
		return fmt.Errorf("record intent: %w", err)
	}
	c.Absences.Clear(run.UID)
	return c.send(ctx, id, w, again, p, token)
}
