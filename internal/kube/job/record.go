package job

import (
	"context"
	"errors"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output/fetch"
)

// Record stores a job's own report of its start or its end. It returns nil only when the ledger has it durably. It
// implements notify.Recorder.
func (c *Controller) Record(ctx context.Context, callback notify.Callback, tokenHash []byte) error {
	var run ledger.Run
	var check, over bool
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		run, check, over = ledger.Run{}, false, false
		proc, err := tx.ProcByJobID(callback.Namespace, callback.Name, callback.JobID, tokenHash)
		if errors.Is(err, ledger.ErrNotFound) {
			return c.unknownJob(tx, callback, tokenHash)
		}
		if err != nil {
			return err
		}
		if run, err = tx.Run(proc.UID, proc.Attempt); err != nil {
			return err
		}
		if !notify.Match(run.TokenHash, tokenHash) {
			// Another schedd may have given the same job id to an attempt whose cluster is not recorded yet.
			if err := c.unknownJob(tx, callback, tokenHash); !errors.Is(err, notify.ErrUnknownJob) {
				return err
			}
			return notify.ErrForbidden
		}
		if callback.Started {
			_, err := crosscheck.ObserveRow(tx, run, proc, crosscheck.Start(c.Now()))
			return err
		}
		// When a run is being stopped, a job's callback says how it was killed.
		if check = callback.Held || run.Deferred || run.Stop != ""; run.Stop != "" {
			return nil
		}
		wrote := fetch.StderrEnd(callback.Stderr)
		says := crosscheck.Callback(callback.Retcode, c.Now()).Wrote(wrote)
		if check {
			says = crosscheck.Writing(wrote, c.Now())
		}
		open, err := crosscheck.ObserveRow(tx, run, proc, says)
		over = open == 0
		return err
	})
	if err != nil {
		return err
	}
	if check {
		c.checks.AddAfter(run.UID, reconciler.FirstRetry)
		return nil
	}
	key := callback.Namespace + "/" + callback.Name
	// Output is fetched, and room made for others, once HTCondor says that the job has ended.
	if over || !callback.Started && (c.admission.Awaited(run.Pool) || run.Factory > 0 && c.toldMany(key, run.Factory)) {
		c.checks.AddAfter(run.UID, reconciler.FirstRetry)
	}
	// Counts are written once a second; more syncs in between would be useless.
	if over {
		c.Ended.Add(key)
	} else {
		c.Counted(key)
	}
	return nil
}

// errNotRecorded is the answer to a job whose callback arrived before its submission was recorded.
var errNotRecorded = errors.New("the submission of this job is not recorded yet")

// unknownJob distinguishes a job that nobody sent from one whose cluster is not recorded yet, which should try again.
func (c *Controller) unknownJob(tx *ledger.Tx, callback notify.Callback, tokenHash []byte) error {
	runs, err := tx.Runs(ledger.RunFilter{Namespace: callback.Namespace, Name: callback.Name, State: ledger.Intent})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if notify.Match(run.TokenHash, tokenHash) {
			return errNotRecorded
		}
	}
	return notify.ErrUnknownJob
}
