package job

import (
	"context"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/target/pool"
)

// CredentialsOf implements jobcredentials.Runs.
func (c *Controller) CredentialsOf(ctx context.Context, uid string, attempt int) (jobcredentials.Run, error) {
	of := func(job *v1alpha1.HTCJob, by pool.Pool) ([]jobcredentials.Credential, bool) {
		return c.Site.CredentialsOf(job, by), true
	}
	return reconciler.CredentialsOf(ctx, c.engine, uid, attempt, of)
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
