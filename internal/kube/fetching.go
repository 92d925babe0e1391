package kube

import (
	"context"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/schedd"
)

// reasonNoSpace is a reason of the conditions OutputFetched and Submitted.
const reasonNoSpace = "NoSpace"

// fetched passes the results of fetches on to the queues, the user and the Observer.
type fetched struct{ *Controller }

// Tried tells the user once what prevents a fetch.
func (c fetched) Tried(key string, err error) {
	defer c.queue.Add(key)
	if err == nil {
		c.memory.unblock(key, fetching)
		return
	}
	t := explainFetch(err)
	c.Observer.FetchFailed(t.Reason)
	if c.memory.block(key, fetching, t) {
		c.Log.Warn().Err(err).Str("job", key).Str("reason", t.Reason).Msg("output not fetched yet")
		c.warn(key, t.Reason, t.Message)
	}
}

func (c fetched) Fetched(_ ledger.Run, procs int, bytes int64) { c.Observer.Fetched(procs, bytes) }

func (c fetched) Incomplete(run ledger.Run, lack string) {
	c.warn(run.Namespace+"/"+run.Name, lifecycle.ReasonIncomplete, lack)
}

func (c fetched) GaveUp(run ledger.Run, procs int, why string) {
	c.Observer.GaveUp(procs)
	c.warn(run.Namespace+"/"+run.Name, lifecycle.ReasonGivenUp, fmt.Sprintf("the output of %s could not be fetched: %s", lifecycle.Plural(procs, "job"), why))
}

func (c fetched) Requeued(run ledger.Run) { c.checks.Add(run.UID) }

// Ended records how jobs of a suspended run ended and queues their output for fetching.
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

// explainFetch is explain for errors of a fetch.
func explainFetch(err error) blocker {
	t := explain(err)
	t.Condition = v1alpha1.ConditionOutputFetched
	t.Message = "the output is not fetched yet: " + t.Message
	return t
}
