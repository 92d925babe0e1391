package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
)

// absentTwice is how far apart two successful answers without a trace of the tag must be before the run is sent
// again. The condor_submit of an earlier htcd died with it (package tool), before this one could take the Lease. What it
// had sent by then, the schedd has either committed or dropped when it answers a later condor_q: it serves the connection
// of a submission from the login to the commit, or to its end, and nobody else meanwhile (handle_q in its qmgmt.cpp). So
// the first answer shows it; the second is for what we may have overlooked.
const absentTwice = 3 * time.Second

// recover finds out what became of an attempt that may or may not have been sent. run is nil when the ledger has
// forgotten the attempt; it is written down again first, so that a second loss changes nothing.
func (c *Controller) recover(ctx context.Context, job *v1alpha1.HTCJob, run *ledger.Run, attempt int) error {
	// An htcd that did not write down where it sent an attempt sent it where its flags said.
	chosen := run == nil || run.Schedd == ""
	var t backend.Target
	var id schedd.Identity
	var err error
	if chosen {
		t, id, err = c.choose(ctx, job)
	} else {
		t = backend.TargetOf(*run)
		id, err = c.Credentials.Identity(ctx, t)
	}
	if err != nil {
		return err
	}
	if run != nil && c.tries.get(*run).unsent {
		return c.goOn(ctx, job, *run)
	}
	if run == nil {
		if run, err = c.writeAgain(ctx, job, t, attempt); err != nil || run == nil {
			return err
		}
	}
	constraint := tag(job, run.Attempt).Constraint()
	if !chosen && !lifecycle.Restored(run) {
		asked, absent, err := c.noTrace(ctx, *run, c.lookAgainAfter(*run))
		if err != nil {
			return fmt.Errorf("look for attempt %d among others: %w", run.Attempt, err)
		}
		if absent {
			return c.missing(ctx, job, *run, asked)
		}
	}
	if lifecycle.Restored(run) {
		constraint = schedd.UIDConstraint(run.UID)
	}
	queued, left, err := c.find(ctx, id, constraint, c.tries.get(*run).since)
	if err != nil {
		return fmt.Errorf("look for attempt %d: %w", run.Attempt, err)
	}
	queued, left, others, err := c.owners.Own(ctx, t, id, queued, left)
	if err != nil {
		return fmt.Errorf("look whose the jobs of attempt %d are: %w", run.Attempt, err)
	}
	if newest := newestAttempt(queued, left); lifecycle.Restored(run) && newest > run.Attempt {
		return c.supersede(ctx, job, *run, newest)
	}
	queued, left = ofAttempt(run.Attempt, queued), ofAttempt(run.Attempt, left)
	switch f := judge(queued, left, c.Now()); f.verdict {
	case whole:
		c.absences.clear(run.UID)
		c.Log.Info().Str("job", job.Namespace+"/"+job.Name).Int("cluster", f.cluster.ID).Msg("adopted")
		c.Observer.repaired(crosscheck.Adopted)
		adopted := t.Of(*run)
		adopted.Submitted = f.since(c.Now())
		if f.specHash != "" { // the spec may have been edited since, and the ledger lost or older
			adopted.SpecHash = f.specHash
		}
		if err := c.recordCluster(ctx, job, adopted, f.cluster); err != nil {
			return err
		}
		c.checks.Add(run.UID)
		return nil
	case spooling:
		c.absences.clear(run.UID)
		return &waiting{2 * time.Second, fmt.Sprintf("cluster %d is being spooled", f.cluster.ID)}
	case halfSpooled:
		c.absences.clear(run.UID)
		c.Log.Info().Str("job", job.Namespace+"/"+job.Name).Int("cluster", f.cluster.ID).Msg("removing a half-spooled cluster")
		// The cluster as well as the tag: the next leader may have sent one with the same tag in the meantime.
		stuck := schedd.In(f.cluster.ID, tag(job, run.Attempt).Constraint()+" && "+schedd.Unspooled)
		if _, err := c.remove(ctx, t, stuck, crosscheck.ReasonStuck); err != nil {
			return fmt.Errorf("remove half-spooled cluster %d: %w", f.cluster.ID, err)
		}
		c.Observer.repaired(crosscheck.HalfSpooled)
		return &waiting{time.Second, fmt.Sprintf("the half-spooled cluster %d is being removed", f.cluster.ID)}
	}
	// Perhaps somebody wants to have them taken for this run; perhaps the credentials were others when they were sent. They
	// are not adopted in the one case, and nothing is sent beside them in the other.
	if others = ofAttempt(run.Attempt, others); len(others) > 0 {
		return othersCluster(others[0])
	}
	return c.missing(ctx, job, *run, c.Now())
}

// missing goes on with an attempt of which HTCondor has no trace: at the first time it waits, at the second it is sent.
func (c *Controller) missing(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run, asked time.Time) error {
	if first := c.absences.first(run.UID, asked); asked.Sub(first) < absentTwice {
		return &waiting{absentTwice, "the schedd does not know this attempt; it is asked once more before anything is sent"}
	}
	return c.goOn(ctx, job, run)
}

// lookAgainAfter is when the next question about an attempt may have begun at the earliest.
func (c *Controller) lookAgainAfter(run ledger.Run) time.Time {
	after := c.tries.get(run).ended
	if first, missed := c.absences.get(run.UID); missed && first.Add(absentTwice).After(after) {
		return first.Add(absentTwice - 1)
	}
	return after
}

// writeAgain writes down an attempt that the ledger has forgotten. It returns nil when nothing is to be done about it now.
func (c *Controller) writeAgain(ctx context.Context, job *v1alpha1.HTCJob, t backend.Target, attempt int) (*ledger.Run, error) {
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
	run := t.Of(c.newRun(current, attempt, schedd.Description{}))
	if int(job.Status.Attempt) == attempt {
		run.Rerun = job.Status.Rerun // the annotation may have a newer value by now
	}
	run.Deferred = true // the token went with the ledger: only HTCondor can say how its jobs end
	err = c.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.InsertRun(run) })
	if errors.Is(err, ledger.ErrExists) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record intent: %w", err)
	}
	return &run, nil
}

// goOn sends an attempt of which the schedd has nothing, unless it is not to be sent any more.
func (c *Controller) goOn(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run) error {
	if fresh, err := c.fresh(ctx, job); err != nil || !fresh {
		return err
	}
	if job.Spec.Suspend {
		return c.withdraw(ctx, run)
	}
	return c.sendAgain(ctx, job, run)
}

// supersede goes on with a later attempt than the one that is remembered: both were lost with the ledger, and only the
// schedd knows how far it went.
func (c *Controller) supersede(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run, attempt int) error {
	later := backend.TargetOf(run).Of(c.newRun(job, attempt, schedd.Description{}))
	later.Deferred = true
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
	return c.recover(ctx, job, &later, attempt)
}

func newestAttempt(lists ...[]schedd.Job) int {
	newest := 0
	for _, j := range slices.Concat(lists...) {
		newest = max(newest, j.Tag.Attempt)
	}
	return newest
}

func ofAttempt(attempt int, jobs []schedd.Job) []schedd.Job {
	return slices.DeleteFunc(jobs, func(j schedd.Job) bool { return j.Tag.Attempt != attempt })
}

// sendAgain sends an attempt that the schedd twice said it has not. The sandbox and the token are new, and the schedd is
// chosen anew: the spec, or the site's command, may name another by now.
func (c *Controller) sendAgain(ctx context.Context, job *v1alpha1.HTCJob, run ledger.Run) error {
	d, err := c.Site.translate(job, run.Attempt)
	if err != nil {
		return c.refuse(ctx, job, run, err)
	}
	t, id, err := c.choose(ctx, job)
	if err != nil {
		return err
	}
	if err := c.limits.Ask(id, c.Now()); err != nil {
		return err
	}
	fresh := t.Of(c.newRun(job, run.Attempt, d))
	token, hash := notify.NewToken()
	fresh.TokenHash, fresh.Created = hash, run.Created
	if err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error { return updateIntent(tx, fresh) }); err != nil {
		return fmt.Errorf("record intent: %w", err)
	}
	c.absences.clear(run.UID)
	return c.send(ctx, id, job, fresh, d, token)
}

type verdict int

const (
	absent      verdict = iota
	whole               // all files arrived, or it ran already: this is the run's cluster
	spooling            // files may still be arriving
	halfSpooled         // files stopped arriving: it will never run
)

type finding struct {
	verdict  verdict
	cluster  schedd.Cluster
	qdate    int64  // when the schedd took the oldest of its jobs, 0 when no ad says so
	specHash string // of the spec it was sent with, "" when no ad says so
}

// since is when the cluster was submitted: start time and deadlines count from there, however long nobody knew of it. The
// schedd's clock may be ahead of ours.
func (f finding) since(now time.Time) time.Time {
	if sent := time.Unix(f.qdate, 0); f.qdate > 0 && sent.Before(now) {
		return sent
	}
	return now
}

// judge says what the jobs found under one tag amount to. One proc that is spooled, or ended, stands for its cluster: it may have
// begun to run, and so the cluster cannot be sent again. Should the schedd have been killed before it had marked the others as
// spooled, the cross-check deals with them. With more than one cluster the whole one counts, the oldest first.
func judge(queued, left []schedd.Job, now time.Time) finding {
	clusters := map[int]*finding{}
	for _, j := range slices.Concat(queued, left) {
		f := clusters[j.Cluster]
		if f == nil {
			f = &finding{cluster: schedd.Cluster{ID: j.Cluster}, verdict: spooling}
			clusters[j.Cluster] = f
		}
		f.cluster.Procs = max(f.cluster.Procs, j.Proc+1)
		if j.QDate > 0 && (f.qdate == 0 || j.QDate < f.qdate) {
			f.qdate = j.QDate
		}
		f.specHash = cmp.Or(f.specHash, j.Tag.SpecHash)
		if j.Spooled() || !j.Spooling() {
			f.verdict = whole
		}
	}
	for _, j := range queued {
		f := clusters[j.Cluster]
		if f.verdict == spooling && now.Sub(time.Unix(j.QDate, 0)) > schedd.SpoolTime(f.cluster.Procs) {
			f.verdict = halfSpooled
		}
	}
	found := finding{}
	rank := map[verdict]int{absent: 0, halfSpooled: 1, spooling: 2, whole: 3}
	for _, f := range clusters {
		if order := cmp.Compare(rank[f.verdict], rank[found.verdict]); order > 0 || order == 0 && f.cluster.ID < found.cluster.ID {
			found = *f
		}
	}
	return found
}

// absences remembers when a run was first not found. Memory is enough: after a restart the asking begins anew.
type absences struct {
	mu sync.Mutex
	m  map[string]time.Time
}

func (a *absences) first(uid string, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.m == nil {
		a.m = map[string]time.Time{}
	}
	if _, known := a.m[uid]; !known {
		a.m[uid] = now
	}
	return a.m[uid]
}

func (a *absences) get(uid string) (first time.Time, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, is = a.m[uid]
	return first, is
}

func (a *absences) clear(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.m, uid)
}
