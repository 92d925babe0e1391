package schedd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/classad"
)

// tryTime is how long the job of TryDAG exists at most, whatever becomes of htcd.
const tryTime = 10 * time.Minute

// trial returns the sandbox of a DAG without nodes, which ends where DAGMan would begin. It has no tag: no htcd looks
// for it.
func trial() (Sandbox, error) {
	archive, err := DAG{}.archive([]File{{Name: fileFlow + ".new", Mode: 0o600}}, nil, nil)
	if err != nil {
		return Sandbox{}, err
	}
	limit := int64(tryTime / time.Second)
	submit := written(append([]option{
		{
			"universe",
			"scheduler",
		}, {"executable", fileStarter}, {"transfer_input_files", fileArchive}, {"output", Stdout}, {"error", Stderr},
		{"My.JobBatchName", classad.Quote("htcd doctor")}, noMail,
		{"leave_in_queue", fmt.Sprintf("JobStatus == %d && time() - QDate < %d", Completed, limit)},
		{"periodic_remove", fmt.Sprintf("time() - QDate > %d", limit)},
	}, heldIfUnable(122)...), 1)
	return Sandbox{Procs: 1, Files: []File{
		{Name: fileArchive, Mode: 0o600, Content: archive},
		{
			Name:    fileStarter,
			Mode:    0o755,
			Content: "#!/bin/sh\n# Tries whether HTCWorkflows could run.\nmax_idle=0\nmax_jobs=0\n" + starterBody,
		},
		{Name: fileSubmit, Mode: 0o644, Content: submit},
	}}, checkWritten(submit)
}

// TryDAG finds out whether DAGs can run at a schedd: it sends one without nodes, waits for its end until ctx ends, and
// removes it. why is what keeps them from running; an error is about the question. dir is for its files.
func (c *Client) TryDAG(ctx context.Context, id Identity, dir string) (why string, err error) {
	s, err := trial()
	if err != nil {
		return "", err
	}
	if err := Stage(dir, s); err != nil {
		return "", err
	}
	cluster, err := c.Submit(ctx, id, dir)
	if e, ok := errors.AsType[*Error](err); ok && e.Cluster != nil {
		cluster = *e.Cluster
	}
	if cluster.ID > 0 {
		defer func() { // condor_rm has a deadline of its own
			err = errors.Join(
				err,
				c.Remove(
					context.WithoutCancel(ctx),
					id,
					fmt.Sprintf("ClusterId == %d", cluster.ID),
					"htcd doctor has what it wanted",
				),
			)
		}()
	}
	if KindOf(err) == Refused {
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
	err = c.Queue(ctx, id, fmt.Sprintf("ClusterId == %d", cluster), func(j Job) error {
		there = true
		switch unable, is := j.Unable(); {
		case is:
			ended, why = true, unable
		case j.Status == Held && j.HoldReasonCode != holdCodeSpooling && !asked:
			asked = true
			return ErrReasons
		case j.Status == Held && j.HoldReasonCode != holdCodeSpooling:
			ended, why = true, fmt.Sprintf("job %s, which tries it, is on hold: %s", j.ID(), j.HoldReason)
		case j.Status == Completed && (j.ExitCode == nil || *j.ExitCode != 0):
			ended, why = true, fmt.Sprintf("job %s, which tries it, has failed", j.ID())
		case j.Status == Completed:
			ended = true
		}
		return nil
	})
	if err == nil && !there {
		ended, why = true, fmt.Sprintf("job %d.0, which tries it, was removed", cluster)
	}
	return ended, why, err
}
