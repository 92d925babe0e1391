package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

// recoverLost records again what the ledger has lost of a workflow, one DAG after another, each when HTCondor has said
// how the one before it ended: the spec and these ends say which nodes it has, and a hash in its ad proves it. How its
// nodes ended is then asked as of every DAG.
//
//	finalizer, no row ──> DAGs in queue or history? ──yes──> adopt the next ──> ask how its nodes ended ──> ... ──> all are there
//	status knows more               │
//	                                └─no, twice, and the status knows none either──> submit
//
// As long as the schedd has a DAG of it, or the status tells of one, nothing is sent in addition, unless that one's
// files never arrived.
func (c *Controller) recoverLost(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation) error {
	t, places, err := c.lostAt(ctx, w)
	if err != nil {
		return err
	}
	found, err := c.sender.SearchAll(ctx, places, condor.UIDConstraint(string(w.UID)), "")
	if err != nil {
		return fmt.Errorf("look for lost DAGs: %w", err)
	}
	sent, unstaged := map[int]int{}, map[int]int{}
	for _, at := range found {
		for _, j := range slices.Concat(at.Queued, at.Left) {
			sent[j.Tag.Attempt] = j.Cluster
		}
		for _, j := range at.Unstaged {
			if speaksOf(w, j) {
				unstaged[j.Tag.Attempt] = j.Cluster
			}
		}
	}
	forgettable := s.forgettable(c.Output.Root != "", found)
	next, err := s.nextLost(sent, unstaged)
	switch {
	case err != nil && !forgettable:
		return cmp.Or(c.doubtful(ctx, w, places), err)
	case err != nil:
	case next.attempts > 0:
		before := cmp.Or(next.again, next.number)
		if err := c.releaseBefore(ctx, found, before); err != nil {
			return err
		}
		return c.recordForgotten(ctx, w, s, t, next.attempts, before-1)
	case next.number > 0:
		at := sending.Where(found, next.number)
		err = c.adoptNext(ctx, w, s, at.Target, next, at.Found)
	default:
		var others []condor.Job
		for _, at := range found {
			others = append(others, at.Others...)
		}
		return c.sendLost(ctx, w, s, t, places, sending.Found{Others: others})
	}
	if _, lost := errors.AsType[*lostError](err); lost && forgettable {
		_, newest := sending.Newest(found)
		if err := c.releaseBefore(ctx, found, newest+1); err != nil {
			return err
		}
		return c.recordForgotten(ctx, w, s, t, int(w.Status.Attempt)-s.Attempt, newest)
	}
	return err
}

// doubtful returns a *sending.Waiting while DAGs may be missing because a schedd shows another queue than its own.
func (c *Controller) doubtful(ctx context.Context, w *v1alpha1.HTCWorkflow, places []backend.Target) error {
	return c.sender.Doubtful(ctx, string(w.UID), places, w.CreationTimestamp.Time, c.Now(), "it counts as lost")
}

// lostAt returns where a DAG of such a workflow would be sent now, and where those may be that were sent.
func (c *Controller) lostAt(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
) (t backend.Target, places []backend.Target, err error) {
	p, err := c.pools.New(asJob(w))
	if err != nil {
		return t, nil, err
	}
	t, _, err = c.Choose(ctx, asJob(w), p, c.Site.Policy)
	return t, reconciler.Places(asJob(w), p, t), err
}

// sentLater reports whether one of the schedds has a later DAG than the newest in the ledger. Those that this process
// has begun are in the ledger; after one that it has found there at its start, or has recorded again, later ones may be
// missing.
func (c *Controller) sentLater(ctx context.Context, places []backend.Target, s Situation) (bool, error) {
	newest := s.newest()
	if newest == nil || !newest.Run.Restored && !newest.Run.Created.Before(c.began) {
		return false, nil
	}
	return c.sender.LaterThan(ctx, newest.Run, places)
}

// releaseBefore lets DAGs that have ended leave the queue before it is recorded that they are not known any more: their
// output can no longer be told apart.
func (c *Controller) releaseBefore(ctx context.Context, found []sending.At, number int) error {
	for _, at := range found {
		earlier := slices.DeleteFunc(
			slices.Clone(at.Queued),
			func(j condor.Job) bool { return j.Tag.Attempt >= number },
		)
		if err := c.releaseEnded(ctx, at.Target, earlier); err != nil {
			return err
		}
	}
	return nil
}

// sendLost sends the next DAG of a workflow, which HTCondor does not have, as two answers have shown.
func (c *Controller) sendLost(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	s Situation,
	t backend.Target,
	places []backend.Target,
	found sending.Found,
) error {
	d, number := Decision{Action: Submit, Again: s.due() || int(w.Status.Attempt) > s.Attempt}, 1
	if n := s.newest(); n != nil {
		number = n.Run.Attempt + 1
	}
	if !d.Again {
		var follows bool
		if d.Level, follows = s.next(); !follows {
			return &lostError{"no other DAG follows from what is known of those before"}
		}
	}
	if _, err := c.sender.Judge(ctx, t, tag(w, number), found); err != nil {
		return err
	}
	lost := ledger.Run{UID: string(w.UID), Created: w.CreationTimestamp.Time}
	if err := c.sender.Missing(ctx, places, lost, c.Now()); err != nil {
		return err
	}
	if s.waits() {
		c.Absences.Clear(string(w.UID))
		return c.recordForgotten(ctx, w, s, t, 1, 0)
	}
	return c.submit(ctx, w, s, d)
}

// recordForgotten records that there were attempts of which nothing is known, so that later ones have numbers of their
// own, and later DAGs such as come after last.
func (c *Controller) recordForgotten(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	s Situation,
	t backend.Target,
	attempts, last int,
) error {
	held, err := c.Keeper.Hold(ctx, t.Account)
	if err != nil {
		return err
	}
	defer held()
	if fresh, err := reconciler.Fresh(ctx, c.engine, w); err != nil || !fresh {
		return err
	}
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		for n := range attempts {
			run := t.Of(c.newRun(w, s, Decision{Again: true}))
			if n == attempts-1 {
				run.Attempt = max(run.Attempt, last)
			}
			run.State, run.Stop, run.Reason, run.Message = ledger.Removed, crosscheck.StopSuspended, reasonLedgerLost, "the ledger has lost this attempt"
			run.SpecHash, run.Ended, run.Confirmed, run.Restored = "", c.Now(), true, true
			if err := tx.InsertRun(run); err != nil {
				return err
			}
			s.DAGs, s.Attempt = append(s.DAGs, DAG{Run: run}), s.Attempt+1
		}
		return nil
	})
	if err != nil && !errors.Is(err, ledger.ErrExists) {
		return fmt.Errorf("record lost attempts: %w", err)
	}
	return nil
}

// adoptNext records a DAG that was found, with its nodes.
func (c *Controller) adoptNext(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	s Situation,
	t backend.Target,
	next lostDAG,
	found sending.Found,
) error {
	f, err := c.sender.Judge(ctx, t, tag(w, next.number), found)
	if err != nil {
		return err
	}
	is := fmt.Sprintf("the schedd has its DAG %d.0", f.Cluster.ID)
	if f.SpecHash != w.SpecHash() {
		return &lostError{is + ", of an earlier spec"}
	}
	if next.told { // the annotation may have changed since
		s.Workflow = w.DeepCopy()
		metav1.SetMetaDataAnnotation(&s.Workflow.ObjectMeta, v1alpha1.RerunAnnotation, w.Status.Rerun)
	}
	d, follows := Decision{Again: s.due()}, true
	if !d.Again {
		if repeats := s.readRepeats(f.Repeats); len(repeats) > 0 {
			s.Repeat = repetition{all: repeats}
		}
		d.Level, follows = s.next()
	}
	if !follows || next.told && d.Again != (int(w.Status.Attempt) > s.Attempt) {
		return &lostError{is + ", which does not follow from what is known of those before it"}
	}
	run := c.newRun(s.Workflow, s, d)
	run.Attempt, run.TempDir = next.number, c.stagingOf(w, next.number)
	p, err := c.prepare(ctx, s.Workflow, s, d.Level, run, nil)
	if condor.KindOf(err) == condor.Refused || err == nil && !p.sentAs(f, d, w.Status) {
		return &lostError{is + ", of an earlier table, of an earlier htcd, or with nodes that cannot be identified"}
	}
	if err != nil {
		return err
	}
	p.states = nil // by which numbers rules acted is not known
	return c.adoptLost(ctx, w, t, run, p, f)
}

// sentAs reports whether a DAG that was found has the nodes that it must have. An earlier htcd wrote no hash.
func (p prepared) sentAs(f recovery.Finding, d Decision, status v1alpha1.HTCWorkflowStatus) bool {
	return f.Nodes == p.hash() || f.Nodes == "" && d.Again && len(p.kept.nodes) == 0 && p.digest == status.ItemsDigest
}

// adoptLost writes the rows of a DAG.
func (c *Controller) adoptLost(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	t backend.Target,
	run ledger.Run,
	p prepared,
	f recovery.Finding,
) error {
	if run = p.pool.Sends(t.Of(run), p.pool.Effective(submit.Requests{})); run.Pool != f.Pool {
		run.Pool, run.PoolSpec, run.Effective = f.Pool, "", ""
	}
	run.ItemsDigest, run.Restored, run.Submitted = p.digest, true, f.Since(c.Now())
	run.Stop = f.Stop
	if f.Made {
		run.Factory = len(p.nodes)
	}
	begun, err := c.begin(ctx, w, run, p)
	if err != nil || !begun {
		return err
	}
	c.Log.Info().Str(
		"workflow",
		keyOf(run),
	).Int(
		"dag",
		run.Attempt,
	).Int(
		"cluster",
		f.Cluster.ID,
	).Msg(
		"adopted: the ledger had lost it",
	)
	c.Observer.Repaired(crosscheck.Adopted, 1)
	if err := c.recordCluster(ctx, w, run, f.Cluster); err != nil {
		return err
	}
	c.checks.Add(keyOf(run))
	return nil
}
