package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/pool"
	"htc.cern.ch/htcd/internal/schedd"
)

// submit begins an attempt after the newest in the ledger: finalizer, intent, sandbox, condor_submit, rows, in that
// order. Whatever interrupts it, the intent row stays and recover takes over; only a refusal of the description is final.
func (c *Controller) submit(ctx context.Context, job *v1alpha1.HTCJob, newest *ledger.Run, attempt int) error {
	p, err := c.pools.New(job)
	if err == nil {
		err = c.inLine(ctx, job, p)
	}
	if err != nil {
		return err
	}
	points, sandbox, err := c.prepare(ctx, job, p, attempt, nil)
	if err == nil {
		err = c.rules(p.Name).Refuse(sandbox.Procs)
	}
	run := p.Sends(c.newRun(job, attempt), p.Effective(sandbox.Requests))
	if err != nil {
		return c.refuse(ctx, job, run, err)
	}
	staging, end := c.staging(ctx, job)
	defer end()
	ready, err := c.resolveInputs(staging, job, sandbox.Procs)
	if err != nil {
		return c.refuse(ctx, job, run, err)
	}
	t, id, err := c.choose(ctx, job, p)
	if err == nil {
		err = c.keeper.MayBegin(t.Account)
	}
	if err != nil {
		return err
	}
	// Every intent that an outage leaves open must be looked up twice afterwards, so none is begun while the schedd does not answer.
	if state := c.answering.State(id.Endpoint); !state.Asked || state.Down {
		if err := c.Schedd.Answers(ctx, id); err != nil {
			return fmt.Errorf("ask before the submission: %w", err)
		}
	}
	if err := c.limits.Ask(id, c.Now()); err != nil {
		return err
	}
	if later, err := c.sentLater(ctx, job, t, id, newest); err != nil {
		return err
	} else if later {
		return c.recover(ctx, job, nil, attempt)
	}
	run = t.Of(run)
	tokens, hash := c.Site.tokens(job)
	run.TokenHash, run.Deferred, run.Procs, run.ItemsDigest = hash, sandbox.Deferred, sandbox.Procs, points.digest
	begun, err := c.begin(ctx, job, p, &run, ready, ledger.PackItems(points.items))
	if err != nil || !begun {
		return errors.Join(err, os.RemoveAll(run.TempDir))
	}
	return c.send(ctx, id, job, run, sandbox, tokens)
}

// prepare returns the items and the sandbox of an attempt; recorded is its run if its intent is in the ledger.
func (c *Controller) prepare(ctx context.Context, job *v1alpha1.HTCJob, by pool.Pool, attempt int, recorded *ledger.Run) (points, schedd.Sandbox, error) {
	p, err := c.pointsOf(ctx, job, recorded)
	if err != nil {
		return p, schedd.Sandbox{}, err
	}
	credentials, err := c.credentials(ctx, job)
	if err != nil {
		return p, schedd.Sandbox{}, err
	}
	sandbox, err := c.Site.render(job, by, attempt, p.items, credentials...)
	return p, sandbox, err
}

// begin stages the inputs, sets the finalizers and writes the intent, unless the HTCJob has to wait for its turn. It returns false if
// the object is not as the cache said; the queue will get its present version.
func (c *Controller) begin(ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool, run *ledger.Run, ready *inputs.Ready, packed ledger.Items) (bool, error) {
	if err := c.admit(ctx, job, *run); err != nil {
		return false, err
	}
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
	if fresh, err := c.fresh(ctx, job); err != nil || !fresh {
		return false, err
	}
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := tx.InsertRun(*run); err != nil {
			return err
		}
		if err := p.Record(tx); err != nil {
			return err
		}
		return insertParts(tx, job, *run, packed)
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

// fresh sets the finalizer and reports whether the object is still as the cache said in everything that decides whether an
// attempt is begun, sent or stopped. It asks the apiserver itself: the informer of an htcd that has just begun to lead may
// show a long outdated version.
func (c *Controller) fresh(ctx context.Context, job *v1alpha1.HTCJob) (bool, error) {
	current, err := c.Objects.AddFinalizer(ctx, job)
	if err != nil {
		return false, fmt.Errorf("add finalizer: %w", err)
	}
	c.cache.Mutation(current)
	return asBefore(job, current) && current.SpecHash() == job.SpecHash(), nil
}

// asBefore reports whether an HTCJob has neither been deleted, nor edited, nor requested to run again.
func asBefore(before, now *v1alpha1.HTCJob) bool {
	return now != nil && now.UID == before.UID && now.DeletionTimestamp == nil && now.Generation == before.Generation && now.Rerun() == before.Rerun()
}

// newRun returns the row of an attempt before anything is done for it.
func (c *Controller) newRun(job *v1alpha1.HTCJob, attempt int) ledger.Run {
	var outputDir string
	if c.Output.Root != "" {
		outputDir, _ = c.Output.AttemptDir(output.Attempt{Namespace: job.Namespace, Name: job.Name, Number: attempt}) // Kubernetes has checked the names
	}
	return ledger.Run{
		UID: string(job.UID), Attempt: attempt, Namespace: job.Namespace, Name: job.Name, Generation: job.Generation,
		SpecHash: job.SpecHash(), Rerun: job.Rerun(),
		State: ledger.Intent, Procs: job.Jobs(), Created: c.Now(),
		TempDir: filepath.Join(c.Staging, fmt.Sprintf("%s-%d", job.UID, attempt)), OutputDir: outputDir,
		SecretInputs: secretInputs(job.Spec),
	}
}

// send runs condor_submit for a run whose intent is in the ledger.
func (c *Controller) send(ctx context.Context, id schedd.Identity, job *v1alpha1.HTCJob, run ledger.Run, sandbox schedd.Sandbox, tokens []string) error {
	if err := c.fetcher.Clear(run); err != nil {
		return fmt.Errorf("drop the output of another run of this name: %w", err)
	}
	if err := stage(run.TempDir, sandbox, tokens); err != nil {
		c.tries.Unstaged(run)
		return c.stageError(err)
	}
	began := c.Now()
	c.tries.Begin(run, c.since(ctx, id, run))
	cluster, err := c.transmit(ctx, id, run)
	c.tries.End(run, c.Now())
	if err != nil && schedd.KindOf(err) != schedd.Refused {
		err = c.unsuccessful(id, run, err)
	}
	if schedd.KindOf(err) == schedd.Refused {
		return c.refuse(ctx, job, run, err)
	}
	if err != nil {
		return err
	}
	c.limits.Over(id)
	c.wakeLimited()
	if cluster.Procs != run.Procs {
		return fmt.Errorf("submit: cluster %d has %d procs instead of %d", cluster.ID, cluster.Procs, run.Procs)
	}
	c.Log.Info().Str("job", job.Namespace+"/"+job.Name).Int("cluster", cluster.ID).Int("procs", cluster.Procs).
		Dur("took", c.Now().Sub(began)).Msg("submitted")
	return c.recordCluster(ctx, job, run, cluster)
}

// stageError says why the files of a submission cannot be written.
func (c *Controller) stageError(err error) error {
	if !output.Full(err) {
		return fmt.Errorf("write the files to be submitted: %w", err)
	}
	left := "how much is free is not known"
	if free, _, err := output.Volume(c.Staging); err == nil {
		left = fmt.Sprintf("%d KiB and %d files are free", free.Bytes>>10, free.Files)
	}
	return &output.NoSpaceError{Message: fmt.Sprintf("the volume is full, %s: the files to be submitted cannot be written; %s: %v", left, output.MoreRoom, err)}
}

// transmit runs condor_submit. A refusal at the commit may be about another client's transaction that was interrupted
// before, so condor_submit runs once more, and the schedd is believed if it repeats itself.
func (c *Controller) transmit(ctx context.Context, id schedd.Identity, run ledger.Run) (schedd.Cluster, error) {
	cluster, err := c.Schedd.Submit(ctx, id, run.TempDir)
	first, ok := errors.AsType[*schedd.Error](err)
	if !ok || !first.AtCommit || first.Kind != schedd.Refused {
		return cluster, err
	}
	cluster, err = c.Schedd.Submit(ctx, id, run.TempDir)
	if second, ok := errors.AsType[*schedd.Error](err); ok && second.AtCommit && !second.Repeats(first) {
		doubted := *second
		doubted.Kind = schedd.Unknown
		err = &doubted
	}
	return cluster, err
}

// recordCluster turns an intent into a submitted run with a row for every proc. The time of submission is now unless the run
// has one.
func (c *Controller) recordCluster(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run, cluster schedd.Cluster) error {
	run.State, run.Reason, run.Message = ledger.Submitted, "", ""
	run.Cluster, run.Procs = cluster.ID, cluster.Procs
	if run.Submitted.IsZero() {
		run.Submitted = c.Now()
	}
	c.admission.Sent(run.Pool, run.Procs, run.Submitted)
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := updateIntent(tx, run); err != nil {
			return err
		}
		// The rows exist already if an htcd that no longer led has reopened the intent; they stay as they are.
		if err := tx.InsertProcs(run, run.Procs); err != nil && !errors.Is(err, ledger.ErrExists) {
			return err
		}
		if run.Restored {
			return recallParts(tx, job, run)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record cluster %d: %w", cluster.ID, err)
	}
	c.tries.Clear(run)
	if err := inputs.Remove(run.TempDir); err != nil {
		c.Log.Warn().Err(err).Str("job", job.Namespace+"/"+job.Name).Msg("staged inputs are still on the disk")
	}
	if err := schedd.Unstage(run.TempDir); err != nil {
		c.Log.Warn().Err(err).Str("job", job.Namespace+"/"+job.Name).Msg("the first copies of credentials are still on the volume")
	}
	c.Events.Normal(job, "Submitted", fmt.Sprintf("cluster %d with %s is at schedd %s", run.Cluster, lifecycle.Plural(run.Procs, "job"), run.Schedd))
	return nil
}

// errWentOn says that another htcd, which led meanwhile, has continued with the run.
var errWentOn = errors.New("another htcd has gone on with this attempt")

// updateIntent writes a run only while the ledger has it as an open intent: a process that was suspended before this write
// and has lost the Lease must not overwrite what the next leader recorded.
func updateIntent(tx *ledger.Tx, run ledger.Run) error {
	now, err := tx.Run(run.UID, run.Attempt)
	if err != nil {
		return err
	}
	if now.State != ledger.Intent {
		return errWentOn
	}
	return tx.UpdateRun(run)
}

// refuse records that the description is wrong, or that an input will not come. It is not tried again until the spec changes.
func (c *Controller) refuse(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run, why error) error {
	reason := "Refused"
	if _, is := errors.AsType[*inputs.Failed](why); is {
		reason = lifecycle.ReasonInputFailed
	} else if schedd.KindOf(why) != schedd.Refused {
		return why
	}
	run.State, run.Reason, run.Message, run.Ended = ledger.Refused, reason, why.Error(), c.Now()
	run.PoolSpec = "" // nothing is sent by it
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		if err := tx.InsertRun(run); !errors.Is(err, ledger.ErrExists) {
			return err
		}
		return updateIntent(tx, run)
	})
	if err != nil {
		return fmt.Errorf("record refusal: %w", err)
	}
	c.tries.Clear(run)
	return os.RemoveAll(run.TempDir)
}

// stage writes the sandbox from scratch, beside the inputs: an earlier try may have left half of one.
func stage(dir string, sandbox schedd.Sandbox, tokens []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range left {
		if inputs.Owns(entry.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return schedd.Stage(dir, sandbox, tokens...)
}

// sentLater reports whether the schedd has a later attempt than the newest in the ledger. Attempts that this process began
// are in the ledger; after those that it found there at its start, later ones may be missing.
func (c *Controller) sentLater(ctx context.Context, job *v1alpha1.HTCJob, t backend.Target, id schedd.Identity, newest *ledger.Run) (bool, error) {
	if newest == nil || !newest.Created.Before(c.began) {
		return false, nil
	}
	queued, left, err := c.find(ctx, id, schedd.LaterConstraint(newest.UID, newest.Attempt), "")
	if err != nil {
		return false, fmt.Errorf("look for attempts after %d: %w", newest.Attempt, err)
	}
	queued, left, _, err = c.owners.Own(ctx, t, id, queued, left)
	if err != nil {
		return false, fmt.Errorf("look whose the jobs after attempt %d are: %w", newest.Attempt, err)
	}
	return len(queued)+len(left) > 0, nil
}

// paused is an error that determines the time of the next try.
type paused struct {
	after time.Duration
	error
}

func (p *paused) Unwrap() error { return p.error }

// unsuccessful decides what a failed submission means. A refusal is final. So is any other error of condor_submit that was
// repeated often enough, unless its cause is something that others have done or can mend.
func (c *Controller) unsuccessful(id schedd.Identity, run ledger.Run, err error) error {
	t := c.tries.Failed(run, err)
	e, own := errors.AsType[*schedd.Error](err)
	switch {
	case schedd.KindOf(err) == schedd.Limit:
		c.limits.Met(id, err, c.Now())
		c.admission.AtSchedd(run.Pool, err.Error())
	case own && e.Kind == schedd.Unknown && e.ExitCode > 0 && e.Cluster == nil && t.Alike >= mostAlike:
		return &schedd.Error{Kind: schedd.Refused, Stderr: fmt.Sprintf("condor_submit failed %d times with the same words: %v", t.Alike, err)}
	}
	return &paused{t.Pause(), fmt.Errorf("submit: %w", err)}
}

// since returns the last job to leave the queue, so that a later search for the submission that begins now need not read the
// history beyond it; empty: not known. The schedd is asked for it only if there is something to look for.
func (c *Controller) since(ctx context.Context, id schedd.Identity, run ledger.Run) string {
	newest := c.crosscheck.NewestKnown(backend.TargetOf(run))
	if t := c.tries.Get(run); newest == "" && t.Alike > 0 && !t.Unsent {
		newest, _ = c.crosscheck.NewestHistory(ctx, id) // without it the whole history is read
	}
	return newest
}

// mostAlike is how often an attempt is sent that fails with the same message: for some eight hours, in which an administrator
// can mend what is broken for everybody.
const mostAlike = 100
