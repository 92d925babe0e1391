package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

const (
	reasonGivenUp    = "GivenUp"    // some output cannot be had
	reasonIncomplete = "Incomplete" // some output lacks files
	reasonNoSpace    = "NoSpace"    // also of the condition Submitted
)

// outputCondition says how far the output of the newest attempt has come. An attempt of an older htcd, whose output is
// not fetched, has no such condition.
func outputCondition(set setCondition, s situation, v view) {
	run, n := s.run, s.output
	if run == nil || run.OutputDir == "" || run.State != ledger.Submitted && run.State != ledger.Removed {
		return
	}
	say := func(is metav1.ConditionStatus, reason, message string) {
		set(v1alpha1.ConditionOutputFetched, is, reason, message)
	}
	switch fetched := n.Completed - n.GivenUp; {
	case n.Waiting > 0 && v.unfetched != nil:
		say(metav1.ConditionFalse, v.unfetched.reason, v.unfetched.message)
	case s.counts.Active > 0:
		say(metav1.ConditionFalse, "NotEnded", "not every job has ended; the output of each is fetched when it does")
	case n.Waiting > 0, !run.Confirmed:
		say(metav1.ConditionFalse, "Fetching", "the output of the jobs that ended is being fetched")
	case n.GivenUp > 0:
		say(metav1.ConditionFalse, reasonGivenUp, fmt.Sprintf("the output of %s is here, that of %s cannot be had", plural(fetched, "job"), plural(n.GivenUp, "other job")))
	case n.Incomplete > 0:
		lacks := n.Stderr[strings.LastIndex(n.Stderr, "\n")+1:]
		say(metav1.ConditionFalse, reasonIncomplete, fmt.Sprintf("the output of %s is here, %d incomplete; %s", plural(fetched, "job"), n.Incomplete, strings.Trim(lacks, "()")))
	case restored(run) && n.Completed == 0:
		// The ledger was lost, and what stood there is still true.
	case n.Completed == 0:
		say(metav1.ConditionTrue, "NothingToFetch", "no job ran to its end")
	default:
		say(metav1.ConditionTrue, "Fetched", fmt.Sprintf("the output of %s is here", plural(fetched, "job")))
	}
}

// fetched passes on what came of fetches: to the queues, to the user, and to whoever counts.
type fetched struct{ *Controller }

// Tried tells the user once when something is in the way.
func (c fetched) Tried(key string, err error) {
	defer c.queue.Add(key)
	if err == nil {
		c.unfetched.clear(key)
		return
	}
	t := explainFetch(err)
	c.Observer.fetchFailed(t.reason)
	if c.unfetched.set(key, t) {
		c.Log.Warn().Err(err).Str("job", key).Str("reason", t.reason).Msg("output not fetched yet")
		c.warn(key, t.reason, t.message)
	}
}

func (c fetched) Fetched(_ ledger.Run, procs int, bytes int64) { c.Observer.fetched(procs, bytes) }

func (c fetched) Incomplete(run ledger.Run, lack string) {
	c.warn(run.Namespace+"/"+run.Name, reasonIncomplete, lack)
}

func (c fetched) GaveUp(run ledger.Run, procs int, why string) {
	c.Observer.gaveUp(procs)
	c.warn(run.Namespace+"/"+run.Name, reasonGivenUp, fmt.Sprintf("the output of %s cannot be had: %s", plural(procs, "job"), why))
}

func (c fetched) Requeued(run ledger.Run) { c.checks.Add(run.UID) }

// Ended writes down how jobs of a suspended run ended, and has their output fetched.
func (c fetched) Ended(ctx context.Context, run ledger.Run, jobs []schedd.Job) error {
	said := map[int]crosscheck.Observation{}
	for _, j := range jobs {
		said[j.Proc] = crosscheck.Ad(j, c.Now())
	}
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		_, err := crosscheck.Observe(tx, run.UID, run.Attempt, said, c.Now(), false)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err == nil {
		c.fetcher.Add(run)
	}
	return err
}

func (c *Controller) warn(key, reason, message string) {
	if job := c.get(key); job != nil {
		c.Events.Warning(job, reason, message)
	}
}

// explainFetch is explain for what is in the way of a fetch.
func explainFetch(err error) blocker {
	t := explain(err)
	t.condition = v1alpha1.ConditionOutputFetched
	t.message = "the output is not fetched yet: " + t.message
	return t
}
