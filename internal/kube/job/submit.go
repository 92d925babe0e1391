package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// submit begins an attempt after the newest in the ledger: finalizer, intent, sandbox, condor_submit, rows, in that
// order. Whatever interrupts it, the intent row stays and recover takes over; only a refusal of the description is
// final.
func (c *Controller) submit(ctx context.Context, job *v1alpha1.HTCJob, s lifecycle.Situation, attempt int) error {
	some, err := c.partOf(ctx, s)
	if err != nil {
		return err
	}
	p, err := c.pools.New(job)
	if err == nil {
		err = c.inLine(ctx, job, p, some)
	}
	if err != nil {
		return err
	}
	if sent, err := c.sentBefore(ctx, job, p, s.Run); err != nil {
		return err
	} else if sent {
		return c.recover(ctx, job, nil, attempt, some)
	}
	points, sandbox, err := c.prepare(ctx, job, p, attempt, some.base, some.numbers)
	run := some.of(p.Sends(c.newRun(job, attempt), p.Effective(sandbox.Requests)))
	asked := run
	asked.Factory = sandbox.Factory
	if err == nil {
		err = c.RulesOf(p.Name).Refuse(demandOf(asked, sandbox.Procs))
	}
	if err == nil {
		err = c.RulesOf(p.Name).RefuseUncounted(demandOf(asked, sandbox.Procs))
	}
	if err != nil {
		return c.refuse(ctx, run, err)
	}
	staging, end := reconciler.Staging(ctx, c.engine, job)
	defer end()
	ready, err := c.resolveInputs(staging, job, max(sandbox.Procs, run.Jobs), points.Each)
	if err != nil {
		return c.refuse(ctx, run, err)
	}
	if err := c.keeper.MayBegin(ctx, p.Account(job)); err != nil {
		return err
	}
	t, id, err := c.Choose(ctx, job, p, c.Site.Policy)
	if err != nil {
		return err
	}
	if err := c.sender.MayBegin(ctx, id, submit.Sends(sandbox.Procs, sandbox.Factory)); err != nil {
		return err
	}
	if err := c.sender.TakesNodes(ctx, id, sandbox.Nodes > 0); err != nil {
		return c.refuse(ctx, t.Of(run), err)
	}
	if later, err := c.sentLater(ctx, job, p, t, s.Run); err != nil {
		return err
	} else if later {
		return c.recover(ctx, job, nil, attempt, some)
	}
	run = t.Of(run)
	tokens, hash := c.Site.Tokens(job, p)
	run.TokenHash, run.Deferred, run.Procs, run.ItemsDigest = hash, sandbox.Deferred, sandbox.Procs, points.Digest
	sandbox = c.firstShare(job, &run, sandbox)
	if err := c.admit(ctx, job, run); err != nil {
		return err
	}
	leave, err := c.sender.Room(run, sandbox, ready.Needs(), output.Room{})
	if err != nil {
		return err
	}
	defer leave()
	begun, err := c.begin(ctx, job, p, &run, some, ready, ledger.PackItems(points.Each))
	end() // others may fetch
	if err != nil || !begun {
		return errors.Join(err, os.RemoveAll(run.TempDir))
	}
	return c.send(ctx, id, job, run, sandbox, tokens)
}

// prepare returns the items and the sandbox of an attempt; recorded is its run if its intent is in the ledger, or the
// one from which it keeps what it does not send: it sends the jobs with these numbers, if there are any.
func (c *Controller) prepare(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	by pool.Pool,
	attempt int,
	recorded *ledger.Run,
	numbers procset.Set,
) (site.Items, submit.Sandbox, error) {
	p, err := c.pointsOf(ctx, job, recorded)
	if err != nil {
		return p, submit.Sandbox{}, err
	}
	credentials, err := c.Site.ReadCredentials(ctx, c.JobSecrets, job, by, c.Now())
	if err != nil {
		return p, submit.Sandbox{}, err
	}
	sandbox, err := c.Site.RenderSome(job, by, attempt, p.Each, numbers.Numbers(), credentials...)
	return p, sandbox, err
}

// begin stages the inputs, sets the finalizers and writes the intent, unless the HTCJob has to wait for its turn after
// all. It returns false if the object is not as the cache said; the queue will get its present version.
func (c *Controller) begin(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	p pool.Pool,
	run *ledger.Run,
	some part,
	ready *inputs.Ready,
	packed ledger.Items,
) (bool, error) {
	if err := c.stageInputs(ready, run); err != nil {
		return false, err
	}
	if err := c.admit(ctx, job, *run); err != nil { // the pool may have changed meanwhile
		return false, err
	}
	held, err := c.keeper.Hold(ctx, backend.TargetOf(*run).Account)
	if err != nil {
		return false, err
	}
	defer held()
	if !c.begins(job, *run) {
		if fresh, err := reconciler.Fresh(ctx, c.engine, job); err != nil || !fresh {
			return false, err
		}
	}
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := tx.InsertRun(*run); err != nil {
			return err
		}
		if err := p.Record(tx); err != nil {
			return err
		}
		return errors.Join(
			insertParts(tx, job, *run, packed),
			some.carry(tx, *run),
			tx.DropEnded(run.UID, run.Attempt-sending.KeptAttempts),
		)
	})
	if errors.Is(err, ledger.ErrExists) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("record intent: %w", err)
	}
	c.admission.Begun(run.Namespace + "/" + run.Name)
	return true, nil
}

// newRun returns the row of an attempt before anything is done for it.
func (c *Controller) newRun(job *v1alpha1.HTCJob, attempt int) ledger.Run {
	var outputDir string
	if c.Output.Root != "" {
		outputDir, _ = c.Output.AttemptDir(
			output.Attempt{Namespace: job.Namespace, Name: job.Name, Number: attempt},
		) // Kubernetes has checked the names
	}
	return ledger.Run{
		UID: string(job.UID), Attempt: attempt, Namespace: job.Namespace, Name: job.Name, Generation: job.Generation,
		SpecHash: job.SpecHash(), Rerun: job.Rerun(),
		State: ledger.Intent, Procs: job.Jobs(), Created: c.Now(),
		TempDir: filepath.Join(c.Staging, fmt.Sprintf("%s-%d", job.UID, attempt)), OutputDir: outputDir,
		SecretInputs: site.SecretInputs(job.Spec),
	}
}

// send runs condor_submit for a run whose intent is in the ledger.
func (c *Controller) send(
	ctx context.Context,
	id schedd.Identity,
	job *v1alpha1.HTCJob,
	run ledger.Run,
	sandbox submit.Sandbox,
	tokens []string,
) error {
	if err := c.fetcher.Clear(run); err != nil {
		return fmt.Errorf("drop the output of another run of this name: %w", err)
	}
	if err := c.keepOutput(ctx, run); err != nil {
		return fmt.Errorf("keep the output of the jobs that do not run again: %w", err)
	}
	if err := c.sender.Stage(run, sandbox, tokens...); err != nil {
		return err
	}
	began := c.Hands(job.Namespace+"/"+job.Name, run.Attempt)
	cluster, err := c.sender.Send(ctx, id, run)
	switch {
	case condor.KindOf(err) == condor.Refused:
		return c.refuse(ctx, run, err)
	case err != nil:
		return err
	}
	if run.Factory > 0 {
		return launching(cluster.ID)
	}
	c.Log.Info().Str("job", job.Namespace+"/"+job.Name).Int("cluster", cluster.ID).Int("procs", cluster.Procs).
		Dur("took", c.Now().Sub(began)).Msg("submitted")
	return c.recordCluster(ctx, job, run, cluster)
}

// recordCluster turns an intent into a submitted run with a row for every proc. The time of submission is now unless
// the run has one.
func (c *Controller) recordCluster(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	run ledger.Run,
	cluster condor.Cluster,
) error {
	if run.Submitted.IsZero() {
		run.Submitted = c.Now()
	}
	c.admission.Sent(run.Pool, submit.Sends(run.Procs, run.Factory), run.Submitted)
	_, err := c.sender.Submitted(ctx, run, cluster, func(tx *ledger.Tx, run ledger.Run) error {
		if !run.Restored || run.Factory > 0 {
			return nil
		}
		return recallParts(tx, job, run)
	})
	return err
}

// refuse records that the description is wrong, or that an input will not come. It is not tried again until the spec
// changes.
func (c *Controller) refuse(ctx context.Context, run ledger.Run, why error) error {
	if err := c.sender.Refuse(ctx, run, why); err != nil {
		return err
	}
	return c.keepOutput(ctx, run)
}

// sentBefore reports whether an HTCJob without a run in the ledger was sent nevertheless, or may have been.
func (c *Controller) sentBefore(
	ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool, newest *ledger.Run,
) (bool, error) {
	if newest != nil {
		return false, nil
	}
	if back, err := c.IsBack(ctx, job); err != nil || back {
		return back, err
	}
	return c.sentUnknown(ctx, job, p)
}

// sentLater reports whether a schedd has a later attempt than the newest in the ledger. Attempts that this process
// began are in the ledger; after those that it found there at its start, later ones may be missing.
func (c *Controller) sentLater(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	p pool.Pool,
	t backend.Target,
	newest *ledger.Run,
) (bool, error) {
	if newest == nil || !newest.Created.Before(c.began) {
		return false, nil
	}
	return c.sender.LaterThan(ctx, *newest, reconciler.Places(job, p, t))
}
