package schedd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// TryDAG finds out whether DAGs can run at a schedd: it sends one without nodes, waits for its end until ctx ends, and
// removes it. why is what keeps them from running; an error is about the question. dir is for its files.
func (c *Client) TryDAG(ctx context.Context, id Identity, dir string) (why string, err error) {
	s, err := submit.Trial()
	if err != nil {
		return "", err
	}
	if err := submit.Stage(dir, s); err != nil {
		return "", err
	}
	cluster, err := c.Submit(ctx, id, dir)
	if e, ok := errors.AsType[*condor.Error](err); ok && e.Cluster != nil {
		cluster = *e.Cluster
	}
	if cluster.ID > 0 {
		defer func() { // condor_rm has a deadline of its own
			_, failed := c.Change(
				context.WithoutCancel(ctx),
				id,
				Remove{inCluster(cluster.ID), "htcd doctor has what it wanted"},
			)
			err = errors.Join(err, failed)
		}()
	}
	if condor.KindOf(err) == condor.Refused {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	for {
		ended, why, err := c.tried(ctx, id, cluster.ID)
		if ended || err != nil && ctx.Err() == nil {
			return why, err
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf(
				"job %d.0 of the scheduler universe, which tries it, has not ended in time: it may wait, since %s",
				cluster.ID,
				SchedulerLimits,
			), nil
		case <-time.After(time.Second):
		}
	}
}

// tried looks at the job of TryDAG.
func (c *Client) tried(ctx context.Context, id Identity, cluster int) (ended bool, why string, err error) {
	there, asked := false, false
	err = c.Query(ctx, id, Query{Where: inCluster(cluster)}, func(j condor.Job) error {
		there = true
		switch unable, is := j.Unable(); {
		case is:
			ended, why = true, unable
		case j.Status == condor.Held && j.HoldReasonCode != condor.HoldCodeSpooling && !asked:
			asked = true
			return ErrReasons
		case j.Status == condor.Held && j.HoldReasonCode != condor.HoldCodeSpooling:
			ended, why = true, fmt.Sprintf("job %s, which tries it, is on hold: %s", j.ID(), j.HoldReason)
		case j.Status == condor.Completed && (j.ExitCode == nil || *j.ExitCode != 0):
			ended, why = true, fmt.Sprintf("job %s, which tries it, has failed", j.ID())
		case j.Status == condor.Completed:
			ended = true
		}
		return nil
	})
	if err == nil && !there {
		ended, why = true, fmt.Sprintf("job %d.0, which tries it, was removed", cluster)
	}
	return ended, why, err
}
