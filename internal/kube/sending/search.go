package sending

import (
	"context"
	"fmt"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Found are the jobs under a tag: those of htcd's accounts in the queue and in the history, and those of others.
// Unstaged are, of whichever account, those that never ran and never will.
type Found struct{ Queued, Left, Others, Unstaged []condor.Job }

// Of returns those of one attempt.
func (f Found) Of(attempt int) Found {
	of := func(jobs []condor.Job) []condor.Job {
		return slices.DeleteFunc(slices.Clone(jobs), func(j condor.Job) bool { return j.Tag.Attempt != attempt })
	}
	return Found{of(f.Queued), of(f.Left), of(f.Others), of(f.Unstaged)}
}

// Newest returns the number of the latest attempt of which there is a job of htcd's, 0 if there is none.
func (f Found) Newest() int {
	newest := 0
	for _, j := range slices.Concat(f.Queued, f.Left) {
		newest = max(newest, j.Tag.Attempt)
	}
	return newest
}

// Search asks the queue and then the history for every job that matches, and whose they are. Jobs that left the queue
// before the job since are skipped. Only a nil error is an answer.
func (s *Sender) Search(
	ctx context.Context,
	t backend.Target,
	id schedd.Identity,
	these condor.Constraint,
	since string,
) (f Found, err error) {
	into := func(list *[]condor.Job) func(condor.Job) error {
		return func(j condor.Job) error {
			if j.Status == condor.Removed && !j.Reasoned {
				return schedd.ErrReasons
			}
			to := list
			if crosscheck.NeverRan(j) {
				to = &f.Unstaged
			}
			*to = append(*to, j)
			return nil
		}
	}
	if err := s.Schedd.Query(ctx, id, schedd.Query{Where: these}, into(&f.Queued)); err != nil {
		return Found{}, err
	}
	gone := schedd.Query{Where: these, Left: &schedd.HistoryBounds{Since: since}}
	if err := s.Schedd.Query(ctx, id, gone, into(&f.Left)); err != nil {
		return Found{}, err
	}
	if f.Queued, f.Left, f.Others, err = s.Owners.Own(ctx, t, id, f.Queued, f.Left); err != nil {
		return Found{}, fmt.Errorf("whose the jobs are: %w", err)
	}
	return f, nil
}

// Judge says what became of an attempt by what was found of it. A nil error comes with a cluster to be adopted, or with
// recovery.Absent: then Missing decides. A cluster that will never run is removed.
func (s *Sender) Judge(ctx context.Context, t backend.Target, tag condor.Tag, f Found) (recovery.Finding, error) {
	found := recovery.Judge(f.Queued, f.Left, f.Unstaged, s.Now())
	if found.Verdict != recovery.Absent {
		s.Absences.Clear(tag.UID)
	}
	switch found.Verdict {
	case recovery.Spooling:
		return found, &Waiting{
			After:   2 * time.Second,
			Message: fmt.Sprintf("cluster %d is being spooled", found.Cluster.ID),
		}
	case recovery.HalfSpooled:
		s.Log.Info().Str(
			"job",
			tag.Namespace+"/"+tag.Name,
		).Int(
			"cluster",
			found.Cluster.ID,
		).Msg(
			"removing a half-spooled cluster",
		)
		if err := s.RemoveStuck(ctx, t, found.Cluster.ID, tag); err != nil {
			return found, fmt.Errorf("remove half-spooled cluster %d: %w", found.Cluster.ID, err)
		}
		return found, &Waiting{
			After:   time.Second,
			Message: fmt.Sprintf("the half-spooled cluster %d is being removed", found.Cluster.ID),
		}
	case recovery.Absent:
		// Jobs of other accounts with this tag are either forged, so they must not be adopted, or were sent with
		// earlier credentials, so nothing must be sent in addition to them.
		if len(f.Others) > 0 {
			return found, s.othersCluster(f.Others[0])
		}
	}
	return found, nil
}

// Opens reports whether HTCondor has jobs of an intent that have not ended, by what was found of it when HTCondor was
// asked. That there is nothing at all of it, two answers must say.
func (s *Sender) Opens(
	ctx context.Context,
	places []backend.Target,
	intent ledger.Run,
	found Found,
	asked time.Time,
) (open bool, err error) {
	open = slices.ContainsFunc(found.Queued, func(j condor.Job) bool { return !j.Done() })
	if len(found.Queued)+len(found.Left) == 0 {
		err = s.Missing(ctx, places, intent, asked)
	}
	if err == nil {
		s.Absences.Clear(intent.UID)
	}
	return open, err
}

// Missing returns nil if an attempt of which HTCondor had no trace when it was asked may be sent: the second time. A
// schedd that has another queue than when the attempt began may soon have that one again, with its jobs: then they get
// the time that other missing jobs get. Both answers must be those of one process at each of the places where it may
// be: what one with an empty queue said means nothing once another has the queue.
func (s *Sender) Missing(ctx context.Context, places []backend.Target, run ledger.Run, asked time.Time) error {
	if err := s.twice(ctx, run.UID, places, asked, "anything is sent"); err != nil {
		return err
	}
	if run.Unsent { // an older ledger may say so, too: the schedds have been asked, but another queue raises no doubt
		return nil
	}
	return s.Doubtful(ctx, run.UID, places, run.Created, asked, "the attempt is sent")
}

// Gone is Missing for jobs of a run that have ended, whose output is still to be fetched.
func (s *Sender) Gone(ctx context.Context, run ledger.Run, asked time.Time) error {
	name, places := endedOf(run.UID), []backend.Target{backend.TargetOf(run)}
	if err := s.twice(ctx, name, places, asked, "its output is given up"); err != nil {
		return err
	}
	return s.Doubtful(ctx, name, places, run.Submitted, asked, "its output is given up")
}

// endedOf returns the name of the ended jobs of an object among the absences. It stays there, so that of many jobs that
// are gone the first alone are asked about twice.
func endedOf(uid string) string { return uid + "/ended" }

// twice returns a *Waiting unless this is the second answer of the same processes without a trace of what has that name
// among the absences; then says what follows from it.
func (s *Sender) twice(ctx context.Context, name string, places []backend.Target, asked time.Time, then string) error {
	var starts int64 // of all, which becomes another if one of them is started again
	for _, t := range places {
		d, err := s.daemon(ctx, t, s.Now().Add(-lately))
		if err != nil {
			return err
		}
		starts += d.Started
	}
	if asked.Sub(s.Absences.Of(name, starts, asked)) < recovery.AbsentTwice {
		return &Waiting{
			After:   recovery.AbsentTwice,
			Message: "the schedd does not know this attempt; it is asked once more before " + then,
		}
	}
	return nil
}

// Doubtful returns a *Waiting for the first hour in which no schedd has a trace of what has that name among the
// absences, if one of them has another queue than when it began; then says what happens after that.
func (s *Sender) Doubtful(
	ctx context.Context,
	name string,
	places []backend.Target,
	began, asked time.Time,
	then string,
) error {
	if asked.Sub(s.Absences.First(name, asked)) >= crosscheck.LostAfterMany {
		return nil
	}
	for _, t := range places {
		d, err := s.daemon(ctx, t, s.Now().Add(-lately))
		if err != nil {
			return err
		}
		if crosscheck.Another(d, began) {
			return &Waiting{
				After: time.Minute,
				Message: "the schedd does not know this attempt, but it has another queue than when the attempt began: it may be that its spool is not mounted, " +
					"or that another schedd answers in its place. In an hour " + then,
			}
		}
	}
	return nil
}

// told is what a schedd said about itself when it was asked at some time.
type told struct {
	daemon schedd.Daemon
	asked  time.Time
}

// lately is how old an answer may be that Missing and Doubtful take; less than recovery.AbsentTwice.
const lately = 2 * time.Second

// daemon returns what a schedd says about itself when it is asked then or later. Those who want to know at the same
// time share a question.
func (s *Sender) daemon(ctx context.Context, t backend.Target, from time.Time) (schedd.Daemon, error) {
	for {
		if known, is := s.told.Load(t); is && !known.(told).asked.Before(from) {
			return known.(told).daemon, nil
		}
		_, err, _ := s.asking.Do(fmt.Sprintf("%q", t), func() (any, error) {
			asked := s.Now()
			id, err := s.Owners.Credentials.Identity(ctx, t)
			if err != nil {
				return nil, err
			}
			d, err := s.Schedd.Daemon(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("ask since when the schedd has its queue: %w", err)
			}
			s.told.Store(t, told{d, asked})
			return nil, nil
		})
		if err != nil {
			return schedd.Daemon{}, err
		}
	}
}

// LookAgainAfter returns the time after which a question about an attempt must have begun to count.
func (s *Sender) LookAgainAfter(run ledger.Run) time.Time {
	after := s.Tries.Get(run).Ended
	if first, missed := s.Absences.Get(run.UID); missed && first.Add(recovery.AbsentTwice).After(after) {
		return first.Add(recovery.AbsentTwice - 1)
	}
	return after
}

// othersCluster names the owner of a job that carries the tag of an attempt that may have been sent.
func (s *Sender) othersCluster(j condor.Job) error {
	return backend.OtherAccount(
		fmt.Sprintf("job %s of the account %s carries this %s's tag, and htcd has no credentials of that account: "+
			"if the %[3]s was being sent with them, put them back into the secret; if the tag is forged, have the schedd's administrator remove that job, "+
			"or let go of it with the annotation %[4]s=true, delete this %[3]s and apply it again", j.ID(), j.Owner, s.Kind, v1alpha1.AbandonAnnotation),
	)
}
