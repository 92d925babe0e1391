package job

import (
	"context"
	"errors"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/pool"
)

// CredentialsOf implements jobcredentials.Runs.
func (c *Controller) CredentialsOf(ctx context.Context, uid string, attempt int) (jobcredentials.Run, error) {
	var run ledger.Run
	var job *v1alpha1.HTCJob
	var by pool.Pool
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if run, err = tx.Run(uid, attempt); err != nil {
			return err
		}
		if job = c.Get(run.Namespace + "/" + run.Name); job == nil || string(job.UID) != uid {
			return nil
		}
		by, err = c.pools.Began(tx, job, run)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return jobcredentials.Run{}, jobcredentials.ErrUnknownRun
	}
	if err == nil && run.State == ledger.Intent {
		err = errNotRecorded
	}
	if err != nil {
		return jobcredentials.Run{}, err
	}
	r := jobcredentials.Run{Namespace: run.Namespace, CallbackHash: run.TokenHash}
	if job != nil && string(job.UID) == uid && run.State == ledger.Submitted && run.Ended.IsZero() &&
		job.SpecHash() == run.SpecHash {
		r.Active, r.Credentials = true, slices.Clip(c.Site.CredentialsOf(job, by))
	}
	return r, nil
}

// watchedOf returns the credentials of an HTCJob whose ends matter now.
func (c *Controller) watchedOf(job *v1alpha1.HTCJob) []jobcredentials.Credential {
	if job.Status.Active == 0 {
		return nil
	}
	return slices.DeleteFunc(c.Site.CredentialsOf(job, c.pools.Presumed(job)), func(c jobcredentials.Credential) bool {
		return c.Kind == jobcredentials.Registry // nothing is known of the ends of logins for registries
	})
}

// JobCredentials counts the HTCJobs with active jobs that have credentials, by jobcredentials.States.
func (c *Controller) JobCredentials() map[string]int { return c.freshness.States() }
