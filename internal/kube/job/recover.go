package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// recover finds out what became of an attempt that may or may not have been sent. run is nil when the ledger has
// lost the attempt; it is recorded again first, so that a second loss changes nothing.
func (c *Controller) recover(ctx context.Context, job *v1alpha1.HTCJob, run *ledger.Run, attempt int, some part) error {
	// Older versions recorded no schedd; they used the configured one.
	chosen := run == nil || run.Schedd == ""
	lost := run == nil || run.Restored
	var t backend.Target
	var p pool.Pool // of an attempt that the ledger has lost
	var err error
	if lost {
		if p, err = c.pools.Lost(job); err != nil {
			return err
		}
	}
	if chosen {
		t, _, err = c.Choose(ctx, job, p, c.Site.Policy)
	} else {
		t = backend.TargetOf(*run)
	}
	if err != nil {
		return err
	}
	if run != nil && c.Tries.Get(*run).Unsent {
		return c.goOn(ctx, job, *run)
	}
	if run == nil {
		if run, err = c.recordAgain(ctx, job, p, t, attempt, some); err != nil || run == nil {
			return err
		}
	}
	these, places, since := site.Tag(job, run.Attempt).Constraint(), []backend.Target{t}, c.Tries.Get(*run).Since
	if !chosen && !lost {
		asked, absent, err := c.lookups.NoTrace(ctx, *run, c.sender.LookAgainAfter(*run))
		if err != nil {
			return fmt.Errorf("look for attempt %d among others: %w", run.Attempt, err)
		}
		if absent {
			return c.missing(ctx, job, places, *run, asked)
		}
	}
	if lost {
		these, places, since = condor.UIDConstraint(run.UID), reconciler.Places(job, p, t), ""
	}
	all, err := c.sender.SearchAll(ctx, places, these, since)
	if err != nil {
		return fmt.Errorf("look for attempt %d: %w", run.Attempt, err)
	}
	if at, newest := sending.Newest(all); lost && newest > run.Attempt {
		return c.supersede(ctx, job, *run, at, newest)
	}
	at := sending.Where(all, run.Attempt)
	f, err := c.sender.Judge(ctx, at.Target, site.Tag(job, run.Attempt), at.Found)
	switch {
	case err != nil:
		return err
	case f.Verdict == recovery.Absent:
		return c.missing(ctx, job, places, *run, c.Now())
	case f.Launcher != nil:
		if f, err = c.launched(ctx, at.Target, site.Tag(job, run.Attempt), f); err != nil {
			return err
		}
	}
	return c.adopt(ctx, job, at.Target.Of(*run), f)
}

// adopt records a cluster that was found.
func (c *Controller) adopt(ctx context.Context, job *v1alpha1.HTCJob, adopted ledger.Run, f recovery.Finding) error {
	c.Log.Info().Str("job", job.Namespace+"/"+job.Name).Int("cluster", f.Cluster.ID).Msg("adopted")
	c.Observer.Repaired(crosscheck.Adopted, 1)
	adopted.Submitted = f.Since(c.Now())
	if f.SpecHash != "" { // the spec may have been edited since, and the ledger lost or restored
		adopted.SpecHash = f.SpecHash
	}
	if f.Pool != adopted.Pool {
		adopted.Pool, adopted.PoolSpec, adopted.Effective = f.Pool, "", ""
	}
	if err := c.agree(ctx, job, &adopted, f); err != nil {
		return err
	}
	if f.Made && adopted.Factory == 0 { // the ledger was lost: the limit is told again
		adopted.Factory, adopted.FactoryIdle = adopted.Procs, ledger.IdleNotKnown
	}
	if err := c.recordCluster(ctx, job, adopted, f.Cluster); err != nil {
		return err
	}
	c.checks.Add(adopted.UID)
	if adopted.Restored {
		c.fetcher.TakeUpAgain() // jobs of earlier attempts may wait in the queue
	}
	return nil
}

// missing continues with an attempt of which HTCondor has no trace: the first time it waits, the second time it sends
// the attempt.
func (c *Controller) missing(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	places []backend.Target,
	run ledger.Run,
	asked time.Time,
) error {
	sent := run
	if run.Restored { // at some time since then
		sent.Created = job.CreationTimestamp.Time
	}
	if err := c.sender.Missing(ctx, places, sent, asked); err != nil {
		return err
	}
	return c.goOn(ctx, job, run)
}

// recordAgain records an attempt that the ledger has lost. It returns a nil run if there is nothing to do about it now.
func (c *Controller) recordAgain(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	p pool.Pool,
	t backend.Target,
	attempt int,
	some part,
) (*ledger.Run, error) {
	held, err := c.keeper.Hold(ctx, t.Account)
	if err != nil {
		return nil, err
	}
	defer held()
	current, err := c.Objects.AddFinalizer(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("add finalizer: %w", err)
	}
	if current.DeletionTimestamp != nil {
		return nil, nil
	}
	run := p.Sends(t.Of(c.newRun(current, attempt)), c.effective(current, p, attempt))
	if int(job.Status.Attempt) == attempt {
		if e := job.Status.Effective; e != nil && e.Pool == run.Pool {
			run.Effective = pool.Write(e)
		}
		run.Rerun = job.Status.Rerun // the annotation may have changed since
		run.InputsDigest, run.ItemsDigest = job.Status.InputsDigest, job.Status.ItemsDigest
		run = lifecycle.Recalled(run, job.Status)
	}
	run = some.of(run)
	run.Restored, run.Deferred = true, true // without its token only HTCondor can say how its jobs end
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		return errors.Join(
			tx.InsertRun(run),
			p.Record(tx),
			tx.RecallProcs(run, some.kept(run, job.Status)),
			some.carry(tx, run),
		)
	})
	if errors.Is(err, ledger.ErrExists) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record intent: %w", err)
	}
	return &run, nil
}

// goOn sends an attempt that the schedd does not have, unless it should no longer be sent.
func (c *Controller) goOn(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run) error {
	if fresh, err := reconciler.Fresh(ctx, c.engine, job); err != nil || !fresh {
		return err
	}
	s := lifecycle.Situation{Job: job, Run: &run, Now: c.Now()}
	if s.Quota = c.QuotaOf(s.Job, s.Demand); s.Waits() {
		return c.sender.Withdraw(ctx, run)
	}
	return c.sendAgain(ctx, job, run)
}

// supersede replaces the recorded attempt with a later one that the schedd has: both were lost with the ledger, and
// only the schedd knows the newest.
func (c *Controller) supersede(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	run ledger.Run,
	t backend.Target,
	attempt int,
) error {
	later := t.Of(c.newRun(job, attempt))
	later.Restored, later.Deferred = true, true
	run.State, run.Reason, run.Message = ledger.Removed, "Superseded", fmt.Sprintf("the schedd has attempt %d", attempt)
	run.Ended, run.Confirmed = c.Now(), true
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := tx.UpdateRun(run); err != nil {
			return err
		}
		return tx.InsertRun(later)
	})
	if err != nil {
		return fmt.Errorf("record attempt %d: %w", attempt, err)
	}
	if err := os.RemoveAll(run.TempDir); err != nil {
		return fmt.Errorf("remove staged files: %w", err)
	}
	return c.recover(ctx, job, &later, attempt, part{})
}

// sendAgain sends an attempt that the schedd certainly does not have. The sandbox and the token are new, and the schedd
// is chosen again: the spec, or the site's command, may name another by now.
func (c *Controller) sendAgain(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run) error {
	p, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (pool.Pool, error) {
		return c.pools.Same(tx, job, run)
	})
	if err != nil {
		return err
	}
	if run.Sent != "" && run.SpecHash != job.SpecHash() { // the results of another spec do not count
		run.Sent, run.Jobs, run.KeptFailed = "", 0, 0
	}
	numbers, err := run.Numbers()
	if err != nil {
		return err
	}
	points, sandbox, err := c.prepare(ctx, job, p, run.Attempt, &run, numbers)
	if run.Sent != "" && points.Digest != "" && points.Digest != run.ItemsDigest { // nor do those of another table
		run.Sent, run.Jobs, run.KeptFailed = "", 0, 0
		points, sandbox, err = c.prepare(ctx, job, p, run.Attempt, &run, procset.Set{})
	}
	if err != nil {
		return c.refuse(ctx, run, err)
	}
	t, id, err := c.Choose(ctx, job, p, c.Site.Policy)
	if err != nil {
		return err
	}
	if err := c.Limits.Ask(id, submit.Sends(sandbox.Procs, sandbox.Factory), c.Now()); err != nil {
		return err
	}
	fresh := p.Sends(t.Of(c.newRun(job, run.Attempt)), p.Effective(sandbox.Requests))
	tokens, hash := c.Site.Tokens(job, p)
	fresh.TokenHash, fresh.Created, fresh.Deferred, fresh.Procs = hash, run.Created, sandbox.Deferred, sandbox.Procs
	sandbox = c.firstShare(job, &fresh, sandbox)
	fresh.ItemsDigest, fresh.Sent, fresh.Jobs, fresh.KeptFailed = points.Digest, run.Sent, run.Jobs, run.KeptFailed
	if fresh.Sent != "" {
		fresh.Rerun = run.Rerun // the annotations may ask for other jobs by now
	}
	leave, err := c.stageAgain(ctx, job, &fresh, sandbox, points.Each, run.InputsDigest)
	if err != nil {
		return c.refuse(ctx, run, err)
	}
	defer leave()
	packed := ledger.PackItems(points.Each)
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := errors.Join(tx.UpdateIntent(fresh), p.Record(tx)); err != nil {
			return err
		}
		if fresh.Sent == "" {
			if err := tx.DropCarried(fresh.UID, fresh.Attempt); err != nil {
				return err
			}
		}
		return insertParts(tx, job, fresh, packed)
	})
	if err != nil {
		return fmt.Errorf("record intent: %w", err)
	}
	c.Absences.Clear(run.UID)
	return c.send(ctx, id, job, fresh, sandbox, tokens)
}
