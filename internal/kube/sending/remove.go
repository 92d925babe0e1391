package sending

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// RemoveAll removes every job of a deleted object by its tag, has rest remove what else of it is at each target, and
// returns nil once the queues show nothing of it. What may be there, as far as the ledger knows, must be absent from
// two answers of one process of its schedd, since a cluster might still appear, and another process may have another
// queue; one answer is enough if that process has shown the jobs as removed. They must be an hour apart if a queue is
// another than that to which it was sent or, where the ledger has lost what was sent, younger than the object.
func (s *Sender) RemoveAll(
	ctx context.Context,
	targets []backend.Target,
	uid string,
	created time.Time,
	runs []ledger.Run,
	rest func(context.Context, backend.Target) error,
) error {
	var all backend.Left
	may := mayBeThere(targets, created, runs)
	open := len(runs) == 0 || slices.ContainsFunc(runs, func(run ledger.Run) bool { return run.State == ledger.Intent })
	shown := !open
	for _, t := range targets {
		left, err := s.removeAt(ctx, t, uid, runs)
		if err != nil {
			return err
		}
		all.Removed, all.Took = all.Removed+left.Removed, all.Took+left.Took
		_, is := may[t]
		shown = shown && (!is || left.Removed > 0)
	}
	if all.Removed > 0 {
		s.Absences.Clear(uid)
		if shown && len(may) > 0 {
			if started, _, err := s.processes(ctx, may); err == nil { // without an answer, two others will count
				s.Absences.Shown(uid, started)
			}
		}
		return stillThere(all)
	}
	for _, t := range targets {
		if err := rest(ctx, t); err != nil {
			return err
		}
	}
	if len(may) > 0 {
		started, another, err := s.processes(ctx, may)
		if err != nil {
			return err
		}
		switch absent := s.Now().Sub(s.Absences.Of(uid, started, s.Now())); {
		case absent < recovery.AbsentTwice:
			return &Waiting{
				After:   recovery.AbsentTwice,
				Message: "the schedd shows none of the jobs; it is asked once more before they count as gone",
			}
		case absent < crosscheck.LostAfterMany && another:
			return &Waiting{
				After: time.Minute,
				Message: "the schedd shows none of the jobs, but it has another queue than when they were sent: it may be that its spool is not mounted, " +
					"or that another schedd answers in its place. They count as gone in an hour",
			}
		}
	}
	s.Absences.Clear(uid)
	return nil
}

// mayBeThere returns since when each target may have what has not left it as far as is known; all of them where the
// ledger has lost what was sent.
func mayBeThere(targets []backend.Target, created time.Time, runs []ledger.Run) map[backend.Target]time.Time {
	since := map[backend.Target]time.Time{}
	sent := func(t backend.Target, at time.Time) {
		if first, is := since[t]; !is || at.Before(first) {
			since[t] = at
		}
	}
	if len(runs) == 0 {
		for _, t := range targets {
			sent(t, created)
		}
	}
	for _, run := range runs {
		if run.State != ledger.Refused && !run.Confirmed {
			sent(backend.TargetOf(run), run.Created)
		}
	}
	return since
}

// processes asks the schedds that may have something, from now on, which of their processes answer, as one number for
// all of them, and whether any has another queue than when that was sent to it.
func (s *Sender) processes(
	ctx context.Context,
	may map[backend.Target]time.Time,
) (started int64, another bool, err error) {
	now := s.Now()
	for t, since := range may {
		d, err := s.daemon(ctx, t, now)
		if err != nil {
			return 0, false, err
		}
		started, another = started+d.Started, another || crosscheck.Another(d, since)
	}
	return started, another, nil
}

// removeAt removes the jobs at one target and returns what has not left the queue yet.
func (s *Sender) removeAt(ctx context.Context, t backend.Target, uid string, runs []ledger.Run) (backend.Left, error) {
	jobs := 0
	for _, run := range runs {
		jobs += run.Procs
	}
	left, err := s.Owners.RemoveDeleted(
		ctx,
		t,
		uid,
		fmt.Sprintf("htcd: the %s was deleted", s.Kind),
		len(runs) == 0 || jobs > manyJobs,
	)
	if err == nil && len(left.Others) > 0 {
		err = othersJobs(t.Namespace, left.Others)
	}
	there := slices.DeleteFunc(
		slices.Clone(runs),
		func(run ledger.Run) bool { return backend.TargetOf(run).Endpoint != t.Endpoint },
	)
	if strange := backend.Strangers(left.Others, there); len(strange) > 0 {
		s.warnOfStrangers(strange)
		left.Others, err = nil, nil
	}
	// Somebody else may keep a removed job with this tag in the queue.
	if accounts, all := backend.KnownAccounts(there); all {
		of, _ := left.Of(accounts)
		left.Removed = of.Removed
	}
	return left, err
}

// manyJobs are too many for the other deleted objects of one condor_rm to wait for (10,000: some seconds).
const manyJobs = 100

// Remove removes jobs at a target and returns nil once they have left the queue.
func (s *Sender) Remove(ctx context.Context, t backend.Target, these condor.Constraint, reason string) error {
	left, err := s.remove(ctx, t, these, reason)
	if err == nil && left.Removed > 0 {
		err = stillThere(left)
	}
	return err
}

// RemoveNodes is Remove for the nodes of DAGs. Jobs with their tags of accounts that the DAGs, which are runs, do not
// have are somebody else's, and left as they are.
func (s *Sender) RemoveNodes(
	ctx context.Context,
	t backend.Target,
	runs []ledger.Run,
	these condor.Constraint,
	reason string,
) error {
	left, err := s.Owners.Remove(ctx, t, these, reason)
	if err != nil {
		return err
	}
	if left.Removed+len(left.Others) > 0 {
		accounts, err := s.Owners.AccountsOfRuns(ctx, t, runs)
		if err != nil {
			return fmt.Errorf("whose the jobs are: %w", err)
		}
		of, strange := left.Of(accounts)
		s.warnOfStrangers(strange)
		switch {
		case len(of.Others) > 0:
			return othersJobs(t.Namespace, of.Others)
		case of.Removed > 0:
			return stillThere(of)
		}
	}
	return s.NoFactory(ctx, t, runs, these)
}

// NoFactory returns nil once the queue shows no factory of these runs; without runs the ledger may have lost them, so
// it asks anyhow. HTCondor keeps a factory that was removed for some seconds after the last of its jobs has left, and
// makes more jobs if the schedd is started again within them. The removal is then repeated.
func (s *Sender) NoFactory(ctx context.Context, t backend.Target, runs []ledger.Run, these condor.Constraint) error {
	if len(runs) > 0 && !slices.ContainsFunc(runs, func(run ledger.Run) bool { return run.Factory > 0 }) {
		return nil
	}
	id, err := s.Owners.Credentials.Identity(ctx, t)
	if err != nil {
		return err
	}
	var there []condor.Job
	factories := schedd.Query{Where: these, Factories: true}
	err = s.Schedd.Query(ctx, id, factories, func(f condor.Job) error { there = append(there, f); return nil })
	if err != nil {
		return fmt.Errorf("ask for factories: %w", err)
	}
	if len(there) == 0 {
		return nil
	}
	accounts, err := s.Owners.AccountsOfRuns(ctx, t, runs)
	if err != nil {
		return fmt.Errorf("whose the factories are: %w", err)
	}
	for _, f := range there {
		if slices.Contains(accounts, f.Owner) {
			return &Waiting{
				After:   5 * time.Second, // as often as HTCondor looks for such ones
				Message: fmt.Sprintf("cluster %d, which makes jobs, is not out of the queue yet", f.Cluster),
			}
		}
	}
	return nil
}

func (s *Sender) warnOfStrangers(strange []condor.Job) {
	if len(strange) == 0 {
		return
	}
	s.Log.Warn().Str("jobid", strange[0].ID()).Str("owner", strange[0].Owner).Int("jobs", len(strange)).
		Msg("somebody else's jobs carry the tag of an object whose jobs are removed; they are left as they are")
}

// stillThere has the schedd asked again, but not all the time: to tell of many jobs takes long.
func stillThere(left backend.Left) error {
	again := min(max(time.Second, 3*left.Took), 30*time.Second)
	return &Waiting{
		After:   again,
		Message: fmt.Sprintf("%s not out of the queue yet", lifecycle.Plural(left.Removed, "job")),
	}
}

// RemoveStuck removes the jobs of a run whose files will never arrive. It names the cluster as well as the tag, since
// the next leader may have sent one with the same tag in the meantime, and spares what has been spooled since the
// schedd was asked.
func (s *Sender) RemoveStuck(ctx context.Context, t backend.Target, cluster int, tag condor.Tag) error {
	_, err := s.remove(ctx, t, tag.Constraint().And(condor.Unspooled).In(cluster), crosscheck.ReasonStuck)
	if err == nil {
		s.Repaired()
	}
	return err
}

// Stuck does so for a run of the cross-check. A namespace whose credentials do not work must not prevent the check of
// the others.
func (s *Sender) Stuck(ctx context.Context, run ledger.Run) error {
	err := s.RemoveStuck(ctx, backend.TargetOf(run), run.Cluster, condor.Tag{UID: run.UID, Attempt: run.Attempt})
	if _, is := errors.AsType[*backend.CredentialError](err); is {
		s.Log.Warn().Err(err).Str("job", run.Namespace+"/"+run.Name).Msg("a half-spooled cluster cannot be removed")
		return nil
	}
	return err
}

// remove removes jobs at a target and returns what has not left the queue yet. If neither their account nor the
// common one may remove some, these are an error.
func (s *Sender) remove(
	ctx context.Context,
	t backend.Target,
	these condor.Constraint,
	reason string,
) (left backend.Left, err error) {
	left, err = s.Owners.Remove(ctx, t, these, reason)
	if err == nil && len(left.Others) > 0 {
		err = othersJobs(t.Namespace, left.Others)
	}
	return left, err
}

// othersJobs names the owner of the jobs that prevent a removal.
func othersJobs(namespace string, left []condor.Job) error {
	return backend.OtherAccount(
		fmt.Sprintf("%s of the account %s, such as %s, cannot be removed with the credentials of namespace %s, "+
			"because the schedd lets only their owner do it: put that account's credentials back into the secret, or have the schedd's administrator remove them "+
			"(or let go of them with the annotation %s=true)", lifecycle.Plural(len(left), "job"), left[0].Owner, left[0].ID(), namespace, v1alpha1.AbandonAnnotation),
	)
}
