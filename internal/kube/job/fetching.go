package job

import (
	"context"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output/push"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// fetched passes the results of fetches on to the queues, the user and the Observer.
type fetched struct{ *Controller }

// Tried tells the user once what prevents a fetch.
func (c fetched) Tried(key string, err error) {
	if err == nil {
		c.Memory.Unblock(key, reconciler.Fetching)
		c.Changed.Add(key)
		return
	}
	t := explainFetch(err)
	c.Observer.FetchFailed(t.Reason)
	c.Report(key, reconciler.Fetching, t, err, "output not fetched yet")
}

func (c fetched) Fetched(run ledger.Run, procs int, bytes int64) {
	c.Observer.Fetched(procs, bytes)
	c.pusher.Queue.Add(run.Namespace + "/" + run.Name)
}

func (c fetched) Incomplete(run ledger.Run, lack string) {
	c.Warn(run.Namespace+"/"+run.Name, lifecycle.ReasonIncomplete, lack)
}

func (c fetched) GaveUp(run ledger.Run, procs int, why string) {
	c.Observer.GaveUp(procs)
	c.Warn(
		run.Namespace+"/"+run.Name,
		lifecycle.ReasonGivenUp,
		fmt.Sprintf("the output of %s could not be fetched: %s", lifecycle.Plural(procs, "job"), why),
	)
}

func (c fetched) Requeued(run ledger.Run) { c.checks.Add(run.UID) }

// Ended records how jobs of a suspended run ended and queues their output for fetching.
func (c fetched) Ended(ctx context.Context, run ledger.Run, jobs []condor.Job) error {
	said := map[int]crosscheck.Observation{}
	for _, j := range jobs {
		said[j.Number()] = crosscheck.Ad(j, c.Now())
	}
	var changes []crosscheck.Change
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
		_, changes, err = crosscheck.Observe(tx, run.UID, run.Attempt, said, c.Now(), crosscheck.OfSome)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err == nil {
		c.Observer.Used(run.Namespace, crosscheck.CoreSeconds(run, changes, c.Now()))
		c.fetcher.Add(run)
	}
	return err
}

// explainFetch is reconciler.Explain for errors of a fetch.
func explainFetch(err error) reconciler.Blocker {
	t := reconciler.Explain(err)
	t.Condition = v1alpha1.ConditionOutputFetched
	t.Message = "the output is not fetched yet: " + t.Message
	return t
}

// gatherWritten reads what the procs of a run have written elsewhere.
func gatherWritten(tx *ledger.Tx, s *lifecycle.Situation) (err error) {
	if s.Written, err = tx.Written(s.Run.UID, s.Run.Attempt, lifecycle.MaxOutputs); err != nil {
		return err
	}
	s.Pushes, err = tx.Pushes(s.Run.UID, s.Run.Attempt)
	return err
}

// recallWritten records again, from the status, what the procs of a run have written elsewhere.
func recallWritten(tx *ledger.Tx, job *v1alpha1.HTCJob, run ledger.Run) error {
	all := site.Destinations(job, run.Attempt)
	if err := tx.SetDestinations(run.UID, run.Attempt, all); err != nil {
		return err
	}
	if int(job.Status.Attempt) != run.Attempt {
		return nil
	}
	for _, w := range lifecycle.WrittenIn(job.Status, all) {
		if err := tx.SetWritten(run.UID, run.Attempt, w); err != nil {
			return err
		}
	}
	return nil
}

// registryCredentials returns those with which the artifacts of a run are pushed, as they are now.
func (c *Controller) registryCredentials(ctx context.Context, item push.Item) ([][]byte, error) {
	run := item.Run
	job := c.Get(run.Namespace + "/" + run.Name)
	if job == nil || string(job.UID) != run.UID || job.DeletionTimestamp != nil {
		return nil, push.ErrGone
	}
	return inputs.DockerConfigs(ctx, c.JobSecrets, job)
}
