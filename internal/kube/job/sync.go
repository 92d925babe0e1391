package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// syncObject updates the status of one HTCJob, whose key no other worker handles, and queues what only HTCondor can do.
// It may run at any time, any number of times.
func (c *Controller) syncObject(ctx context.Context, key string, job *v1alpha1.HTCJob) error {
	s, err := c.gather(ctx, job)
	if err != nil {
		return err
	}
	if err := c.nameSpec(ctx, s); err != nil {
		return err
	}
	d := lifecycle.Plan(s)
	if d.Action != lifecycle.Submit {
		c.admission.Withdraw(key)
	}
	// A submission under way looks like an interrupted one. Its result is reported when it is finished, usually at
	// once.
	if since, claimed := c.Actions.Since(key); claimed && d.Action == lifecycle.Recover &&
		c.Now().Sub(since) < firstWrite {
		c.Changed.AddAfter(key, reconciler.BetweenWrites)
		return nil
	}
	known := c.Memory.Of(key)
	inTheWay := known.Blockers[reconciler.Acting]
	// A new HTCJob's first status waits a little: usually its job ids are known by then.
	if d.Action == lifecycle.Submit && job.Status.ObservedGeneration == 0 && inTheWay == nil {
		if wait := c.Memory.UntilFirstWrite(key, c.Now(), firstWrite); wait > 0 {
			c.Actions.Add(reconciler.Submitting, key)
			c.Changed.AddAfter(key, wait)
			return nil
		}
	}
	if s.Orphans && inTheWay == nil {
		c.Actions.Add(classOf(d.Action), key)
	}
	if s.Unasked {
		c.checks.Add(s.Run.UID)
	}
	if d.Action == lifecycle.Rest {
		c.Memory.Unblock(key, reconciler.Acting)
		inTheWay = nil
		c.waiters.Forget(key)
		if job.DeletionTimestamp != nil {
			return nil
		}
	}
	// The status comes first, so that the action works with the updated object.
	v := lifecycle.View{Decision: d, Secret: c.prover.Of(c.accountOf(job)), Logs: c.logsViewOf(key), Fresh: c.freshOf(job)}
	if s.Run != nil {
		v.Match = c.Matching.Of(s.Run.UID, s.Run.Attempt)
	}
	if inTheWay != nil {
		v.Blocker = &inTheWay.Blocker
	}
	if b := known.Blockers[reconciler.Fetching]; b != nil {
		v.Unfetched = &b.Blocker
	}
	if b := known.Blockers[reconciler.Pushing]; b != nil {
		v.Unpushed = &b.Blocker
	}
	v.Backend = c.Answering.State(c.endpointOf(s, d, inTheWay))
	written, err := c.report(ctx, s, v)
	if err == nil {
		c.leaveLogs(key, s)
		err = c.keepQuota(ctx, s)
	}
	if d.Action != lifecycle.Rest && (inTheWay == nil || c.Now().After(inTheWay.Retry)) {
		c.Actions.Add(classOf(d.Action), key)
	}
	if at := lifecycle.Expiry(s); err == nil && !written && !at.IsZero() && !c.Now().Before(at) {
		ttl, whose := s.TTL()
		return c.Expire(
			ctx,
			s.Job,
			fmt.Sprintf("deleted %s after its end (%s)", lifecycle.Plural(int(*ttl), "second"), whose),
		)
	}
	if wait := d.Again.Sub(c.Now()); !d.Again.IsZero() && wait > 0 {
		c.Changed.AddAfter(key, wait)
	}
	return err
}

// nameSpec adds the spec's hash to a run of an older htcd while the generation shows that the HTCJob still has that
// spec. From then on edits of fields that are not sent do not affect that run, either.
func (c *Controller) nameSpec(ctx context.Context, s lifecycle.Situation) error {
	if s.Run == nil || s.Run.SpecHash != "" || s.Run.Generation != s.Job.Generation {
		return nil
	}
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		run, err := tx.Run(s.Run.UID, s.Run.Attempt)
		if err != nil {
			return err
		}
		run.SpecHash = s.Job.SpecHash()
		return tx.UpdateRun(run)
	})
	if err != nil {
		return fmt.Errorf("name the spec of attempt %d: %w", s.Run.Attempt, err)
	}
	s.Run.SpecHash = s.Job.SpecHash()
	return nil
}

// gather reads everything the decision needs.
func (c *Controller) gather(ctx context.Context, job *v1alpha1.HTCJob) (lifecycle.Situation, error) {
	s := lifecycle.Situation{Job: job}
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		s = lifecycle.Situation{Job: job, Now: c.Now()}
		runs, err := tx.Runs(ledger.RunFilter{Namespace: job.Namespace, Name: job.Name})
		if err != nil {
			return err
		}
		for _, run := range runs {
			switch {
			case run.UID != string(job.UID):
				s.Orphans = true
			case s.Run == nil || run.Attempt > s.Run.Attempt:
				s.Run = &run
			}
		}
		c.believe(&s)
		if s.Run == nil {
			return nil
		}
		run := s.Run
		if s.Keep, err = c.pools.KeepOf(tx, *run); err != nil {
			return err
		}
		if s.Counts, err = tx.Counts(run.UID, run.Attempt); err != nil {
			return err
		}
		if s.Counts.Failed > 0 {
			filter := ledger.ProcFilter{Status: ledger.StatusFailed, Limit: v1alpha1.MaxFailures, Besides: lifecycle.Apart(run)}
			if s.Failures, err = tx.Procs(run.UID, run.Attempt, filter); err != nil {
				return err
			}
		}
		if run.Stop != "" {
			if s.Stopped, err = tx.CountReason(run.UID, run.Attempt, run.Stop); err != nil {
				return err
			}
		}
		if err := gatherSuccesses(tx, &s); err != nil {
			return err
		}
		if run.OutputDir != "" {
			if s.Output, err = tx.Output(run.UID, run.Attempt); err != nil {
				return err
			}
			s.Unfetched = run.State == ledger.Submitted && (!run.Confirmed || s.Output.Waiting > 0)
		}
		if len(job.Spec.Outputs)+len(job.Status.Outputs) > 0 {
			if err := gatherWritten(tx, &s); err != nil {
				return err
			}
		}
		if wanted, _ := lifecycle.Cancels(job, run); s.Counts.Active > 0 && wanted.Len() > 0 {
			open, err := tx.OpenNumbers(run.UID, run.Attempt)
			if err != nil {
				return err
			}
			s.Unwanted = procset.Of(slices.DeleteFunc(open, func(n int) bool { return !wanted.Has(n) }))
		}
		if s.Counts.Held > 0 {
			held, err := tx.Procs(
				run.UID,
				run.Attempt,
				ledger.ProcFilter{Status: ledger.StatusOpen, JobStatus: int(schedd.Held), Limit: 1},
			)
			if err != nil {
				return err
			}
			if len(held) > 0 {
				s.Held = &held[0]
			}
		}
		nameURLs(&s)
		return nameItems(tx, &s)
	})
	if err != nil {
		return s, fmt.Errorf("gather: %w", err)
	}
	c.gatherResult(&s)
	s.Quota, s.Early = c.quotaOf(s), c.early.known()
	s.Released = job.DeletionTimestamp != nil && c.Memory.Of(job.Namespace+"/"+job.Name).Released == job.ResourceVersion
	return s, nil
}

// gatherSuccesses counts the successes that spec.successPolicy is about.
func gatherSuccesses(tx *ledger.Tx, s *lifecycle.Situation) (err error) {
	run, policy := s.Run, s.Job.Spec.SuccessPolicy
	if policy == nil {
		return nil
	}
	s.Successes = make([]lifecycle.Successes, len(policy.Rules))
	for i, rule := range policy.Rules {
		n := &s.Successes[i]
		n.All, n.Before = s.Counts.Succeeded, run.All()-run.Procs-run.KeptFailed
		if among := lifecycle.Indexes(rule); n.All > 0 && among.Len() > 0 {
			if n.All, n.Before, err = tx.CountSucceeded(run.UID, run.Attempt, among); err != nil {
				return err
			}
		}
	}
	return nil
}

// believe decides whose word counts about what was sent. What a status says that was edited by hand is dropped, except
// for the conditions, which are set anew.
func (c *Controller) believe(s *lifecycle.Situation) {
	job := s.Job
	key, ahead := job.Namespace+"/"+job.Name, s.Run == nil && job.Status.Attempt > 0 ||
		s.Run != nil && lifecycle.Ahead(job.Status, *s.Run)
	// A deletion drops the rows before it lets go of the object.
	agreed := c.Memory.Of(key).Agreed == job.UID && !(s.Run == nil && job.DeletionTimestamp != nil)
	switch word := lifecycle.Whose(job.Status, s.Run, agreed, c.began); {
	case word == lifecycle.StatusWord:
		s.Run = nil // as if that attempt had been lost
	case word == lifecycle.HTCondorsWord:
		s.Unasked = true
	case ahead:
		c.Log.Warn().Str(
			"job",
			key,
		).Int32(
			"attempt",
			job.Status.Attempt,
		).Msg(
			"the status tells of an attempt that there never was; the ledger's stands",
		)
		s.Job = job.DeepCopy()
		s.Job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending, Conditions: s.Job.Status.Conditions}
	case !agreed:
		c.Memory.Change(key, func(r *record) { r.Agreed = job.UID })
	}
}

// gatherResult reads what spec.result names, once. What cannot be read leaves the result absent, and is tried again at
// the next visit.
func (c *Controller) gatherResult(s *lifecycle.Situation) {
	if s.Run == nil || s.Job.Spec.Result == "" {
		return
	}
	if s.Result = s.KeptResult(); s.Result != nil || !s.HasResult() {
		return
	}
	file := s.Job.Spec.Result
	if file == "stdout" {
		file = output.Stdout
	}
	a := output.Attempt{Namespace: s.Run.Namespace, Name: s.Run.Name, Number: s.Run.Attempt}
	text, err := c.Output.Result(a, s.Run.All(), file, lifecycle.MaxResult)
	if err == nil {
		s.Result = &text
	} else if !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn().Err(err).Str("job", s.Job.Namespace+"/"+s.Job.Name).Msg("the result cannot be read")
	}
}

// report writes the status and the Events of what happened. It returns whether there was a difference.
func (c *Controller) report(ctx context.Context, s lifecycle.Situation, v lifecycle.View) (differs bool, err error) {
	v.Now = c.Now()
	status := lifecycle.NewStatus(s, v)
	if equality.Semantic.DeepEqual(status, s.Job.Status) {
		return false, nil
	}
	before, after, key := s.Job.Status, status, s.Job.Namespace+"/"+s.Job.Name
	if checkedAgain(before, after) {
		return false, nil
	}
	if wait := c.Memory.UntilWrite(key, v.Now, mayWait(before, after)); wait > 0 {
		c.Changed.AddAfter(key, wait)
		return true, nil
	}
	written, err := c.Objects.SetStatus(ctx, s.Job, status)
	if err != nil {
		return true, fmt.Errorf("write status: %w", err)
	}
	pause := v.Now
	if after.Phase.Terminal() && !lifecycle.OwesOutput(after) {
		pause = time.Time{}
	}
	c.Written(s.Job, written, pause, lifecycle.Events(before, after, s))
	return true, nil
}

// nameURLs completes what HTCondor says about files that it could not transfer.
func nameURLs(s *lifecycle.Situation) {
	for i := range s.Failures {
		s.Failures[i].Message = lifecycle.NameURL(s.Job.Spec, s.Failures[i])
	}
	if s.Held != nil {
		s.Held.Message = lifecycle.NameURL(s.Job.Spec, *s.Held)
	}
}
