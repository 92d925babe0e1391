package job

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/notify/traces"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// current is an HTCJob as it was gathered, and what is decided about it.
type current struct {
	*Controller
	key string
	s   lifecycle.Situation
	d   lifecycle.Decision
}

func (k kind) Gather(
	ctx context.Context, job *v1alpha1.HTCJob,
) (reconciler.Case[*v1alpha1.HTCJob, v1alpha1.HTCJobStatus], error) {
	s, err := k.gather(ctx, job)
	if err != nil {
		return nil, err
	}
	if err := k.nameSpec(ctx, s); err != nil {
		return nil, err
	}
	return current{k.Controller, job.Namespace + "/" + job.Name, s, lifecycle.Plan(s)}, nil
}

// Step implements reconciler.Case, as do the methods below.
func (c current) Step() reconciler.Step {
	s, d, class := c.s, c.d, classOf(c.d.Action)
	step := reconciler.Step{
		Class: class, Orphans: s.Orphans, Resumes: d.Action == lifecycle.Recover, Again: d.Again,
		First: d.Action == lifecycle.Submit && s.Job.Status.ObservedGeneration == 0,
	}
	switch {
	case tooEarly(s, d):
		step.Class, step.Orphans = reconciler.Asking, false
		step.Do = func(ctx context.Context) (reconciler.Class, error) { return class, c.confirm(ctx, *s.Run) }
	case d.Action != lifecycle.Rest:
		step.Do = func(ctx context.Context) (reconciler.Class, error) { return class, c.do(ctx, s.Job, s, d) }
	}
	return step
}

func (c current) Follow(ctx context.Context) error {
	if c.d.Action != lifecycle.Submit {
		c.admission.Withdraw(c.key)
	}
	if c.d.Action == lifecycle.Rest {
		c.waiters.Forget(c.key)
	}
	if c.s.Unasked {
		c.checks.Add(c.s.Run.UID)
	}
	c.leaveLogs(c.key, c.s)
	return c.KeepQuota(ctx, c.s.Job, c.s.Demand)
}

func (c current) Object() (*v1alpha1.HTCJob, v1alpha1.HTCJobStatus) { return c.s.Job, c.s.Job.Status }

func (c current) Status(blockers reconciler.Blockers, now time.Time) v1alpha1.HTCJobStatus {
	at := c.endpointOf(c.s, c.d, blockers[reconciler.Acting])
	v := c.View(c.s.Job, c.s.Run, at, c.freshness, blockers, now)
	v.Logs = lifecycle.LogsView{Off: c.LogsPods.Image == "", Outcome: c.Memory.Of(c.key).Kind.logs}
	return lifecycle.NewStatus(c.s, v)
}

func (c current) Delay(before, after v1alpha1.HTCJobStatus) (pause time.Duration, worth bool) {
	return mayWait(before, after), !checkedAgain(before, after)
}

func (c current) Events(before, after v1alpha1.HTCJobStatus) []lifecycle.Event {
	return lifecycle.Events(before, after, c.s)
}

func (c current) Trace(before, after v1alpha1.HTCJobStatus, handed reconciler.Handed) *traces.Trace {
	if c.s.Run == nil || !lifecycle.Ended(lifecycle.TracedOf(before), lifecycle.TracedOf(after)) {
		return nil
	}
	return lifecycle.TraceOf(c.s, after, handed[c.s.Run.Attempt])
}

func (c current) Expiry() (at time.Time, why string) {
	if at = lifecycle.Expiry(c.s); at.IsZero() {
		return at, ""
	}
	ttl, whose := c.s.TTL()
	return at, fmt.Sprintf("deleted %s after its end (%s)", lifecycle.Plural(int(*ttl), "second"), whose)
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
			filter := ledger.ProcFilter{
				Status:  ledger.StatusFailed,
				Limit:   v1alpha1.MaxFailures,
				Besides: lifecycle.Apart(run),
			}
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
				ledger.ProcFilter{Status: ledger.StatusOpen, JobStatus: int(condor.Held), Limit: 1},
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
	if err == nil && s.Run != nil && s.Run.Factory > 0 && s.Counts.Waiting > 0 {
		s.Pool, err = c.admission.Share(ctx, s.Run.Pool, s.Run.UID)
	}
	if err != nil {
		return s, fmt.Errorf("gather: %w", err)
	}
	c.gatherResult(&s)
	s.Quota, s.Early = c.QuotaOf(s.Job, s.Demand), c.early.known()
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
	switch word := lifecycle.Whose(job.Status, s.Run, agreed || c.SameLedger && s.Run != nil, c.began); {
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
	a := output.Attempt{Namespace: s.Run.Namespace, Name: s.Run.Name, Number: s.Run.Attempt}
	var err error
	s.Result, err = reconciler.Result(s.Job.Spec.Result, s.Run.All(), func(proc int, file string) (*os.File, error) {
		return c.Output.Open(a, proc, file)
	})
	if err != nil {
		c.Log.Warn().Err(err).Str("job", s.Job.Namespace+"/"+s.Job.Name).Msg("the result cannot be read")
	}
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
