package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Crosscheck is one pass over every run whose end HTCondor has not confirmed (package crosscheck), and over runs that
// lost their object. The first pass also takes up output that has been waiting in HTCondor since before htcd began.
func (c *Controller) Crosscheck(ctx context.Context) error {
	return errors.Join(c.crosscheck.Crosscheck(ctx), c.Orphans.Watch(ctx), c.fetcher.TakeUp(ctx))
}

// CheckSoon makes HTCondor be asked about the runs of an HTCJob.
func (c *Controller) CheckSoon(uid string) { c.checks.Add(uid) }

// Refresh asks only the queues, so that the numbers of idle, running and held jobs are known between two cross-checks.
func (c *Controller) Refresh(ctx context.Context) error { return c.crosscheck.Refresh(ctx) }

// Hint looks at once at what a schedd's mirror says has changed.
func (c *Controller) Hint(ctx context.Context, e schedd.Endpoint) error {
	return c.crosscheck.Hint(ctx, e)
}

// checkSome asks about the runs that had callbacks, with one question per account. HTCondor needs a moment
// from the callback to the job's end in its queue, so it asks a few times; then the cron schedule takes over.
func (c *Controller) checkSome(ctx context.Context, uids []string) {
	var runs []ledger.Run
	for _, uid := range uids {
		run, over, err := c.latestOpen(ctx, uid)
		if err != nil {
			c.Log.Warn().Err(err).Str("uid", uid).Msg("check after a callback")
		}
		if over || c.checks.NumRequeues(uid) >= 3 {
			c.checks.Forget(uid)
		} else {
			c.checks.AddRateLimited(uid)
		}
		if !over && err == nil {
			runs = append(runs, run)
		}
	}
	for _, g := range backend.Groups(runs) {
		if err := c.crosscheck.Check(ctx, g); err != nil {
			c.Log.Warn().Err(err).Int("runs", len(g.Runs)).Msg("check after a callback")
		}
	}
}

// checkRun asks about the newest run of an HTCJob unless HTCondor has confirmed its end.
func (c *Controller) checkRun(ctx context.Context, uid string) (over bool, err error) {
	run, over, err := c.latestOpen(ctx, uid)
	if over || err != nil {
		return over, err
	}
	return false, c.crosscheck.Check(ctx, backend.Groups([]ledger.Run{run})[0])
}

// latestOpen returns the newest run of an HTCJob; it is over when HTCondor has confirmed its end, or when it is gone.
func (c *Controller) latestOpen(ctx context.Context, uid string) (run ledger.Run, over bool, err error) {
	run, err = c.latest(ctx, uid)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && (run.State != ledger.Submitted || run.Confirmed) {
		return run, true, nil
	}
	return run, false, err
}

// latest returns the newest run of an HTCJob.
func (c *Controller) latest(ctx context.Context, uid string) (run ledger.Run, err error) {
	return ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) (ledger.Run, error) {
		return tx.LatestRun(uid)
	})
}

// checked passes the findings of a check on to the queues, the user and the Observer.
type checked struct{ *Controller }

func (c checked) Passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error) {
	c.Observer.Passed(pass, endpoint, took, err)
}

func (c checked) Changed(run ledger.Run) {
	c.fetcher.Add(run)
	c.admission.Wake()
}

func (c checked) Checked(run ledger.Run) {
	c.News(run.Namespace+"/"+run.Name, !run.Ended.IsZero())
}

func (c checked) Unchanged(run ledger.Run) { c.Routine.Add(run.Namespace + "/" + run.Name) }

// Unread counts each time but tells the user only once.
func (c checked) Unread(run ledger.Run, jobs []string) {
	key := run.Namespace + "/" + run.Name
	if len(jobs) == 0 {
		c.Memory.Unblock(key, reconciler.Reading)
		return
	}
	c.Observer.Unread(len(jobs))
	t := reconciler.Blocked(
		"",
		"AdUnreadable",
		fmt.Sprintf("HTCondor's ad of job %s cannot be fetched or read, perhaps because of a very long attribute: "+
			"how it goes on with it is not known. Mend it with condor_qedit, or remove it", lifecycle.Shorten(strings.Join(jobs, ", "), lifecycle.MaxListed)),
	)
	if !c.Memory.Block(key, reconciler.Reading, t) {
		return
	}
	c.Log.Warn().Str("job", key).Strs("jobs", jobs[:min(len(jobs), 10)]).Msg("ads that cannot be fetched or read")
	c.Warn(key, t.Reason, t.Message)
}

func (c checked) Repaired(run ledger.Run, repaired crosscheck.Alike) {
	if repaired.Kind == crosscheck.Unstaged {
		c.Observer.Repaired(repaired.Kind, 1)
		c.Log.Warn().Str("job", run.Namespace+"/"+run.Name).Int("cluster", run.Cluster).
			Msg("the schedd lost its files before they arrived; sending it as a new attempt")
		return
	}
	c.Observer.Repaired(repaired.Kind, len(repaired.Numbers))
	first := repaired.First
	line := c.Log.Info().
		Str("job", run.Namespace+"/"+run.Name).
		Str("jobid", first.Is.JobID()). // of the first, as its evidence
		Int("jobs", len(repaired.Numbers)).
		Str("evidence", first.Is.Message)
	reconciler.LogRepaired(line, repaired)
}

func (c checked) Used(run ledger.Run, coreSeconds int64) { c.Observer.Used(run.Namespace, coreSeconds) }

func (c checked) Missing(t backend.Target, m crosscheck.Missing) {
	c.Answering.Missing("HTCJobs", t, m.Jobs, string(m.Doubt))
}

func (c checked) Stuck(ctx context.Context, run ledger.Run) error { return c.sender.Stuck(ctx, run) }
