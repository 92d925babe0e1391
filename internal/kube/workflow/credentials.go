package workflow

import (
	"context"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

// addCredentials gives a step its credentials as they are now, and the token with which its nodes ask for newer ones.
func (c *Controller) addCredentials(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	by pool.Pool,
	run ledger.Run,
	i int,
	step *submit.DAGStep,
) error {
	all, err := c.Site.ReadCredentials(ctx, c.JobSecrets, job, by, c.Now())
	if err != nil || len(all) == 0 {
		return err
	}
	step.Credentials = all
	if step.PullURL = jobcredentials.StepURL(c.Site.CallbackURL, run.UID, run.Attempt, i); step.PullURL != "" {
		step.PullToken = jobcredentials.StepToken(run.TokenHash, i)
	}
	return nil
}

// CredentialsOfStep implements jobcredentials.Runs.
func (c *Controller) CredentialsOfStep(ctx context.Context, uid string, attempt, step int) (jobcredentials.Run, error) {
	of := func(w *v1alpha1.HTCWorkflow, by pool.Pool) ([]jobcredentials.Credential, bool) {
		g, err := graph.New(w.Spec)
		if err != nil || step >= len(g.Steps) {
			return nil, false
		}
		return c.Site.CredentialsOf(stepJob(w, g, step), by), true
	}
	return reconciler.CredentialsOf(ctx, c.engine, uid, attempt, of)
}

// watchedOf returns the credentials of a workflow whose ends matter now.
func (c *Controller) watchedOf(w *v1alpha1.HTCWorkflow) []jobcredentials.Credential {
	if !active(w.Status) {
		return nil
	}
	return c.credentialsOf(w)
}

// active reports whether a workflow has nodes in HTCondor's queue.
func active(status v1alpha1.HTCWorkflowStatus) bool {
	n := status.Nodes
	return !status.Phase.Terminal() && n.Running+n.Idle+n.Held > 0
}

// credentialsOf lists those of all steps whose ends may be known, each once.
func (c *Controller) credentialsOf(w *v1alpha1.HTCWorkflow) (all []jobcredentials.Credential) {
	g, err := graph.New(w.Spec)
	if err != nil {
		return nil
	}
	by := c.pools.Presumed(asJob(w))
	for i := range g.Steps {
		for _, one := range c.Site.CredentialsOf(stepJob(w, g, i), by) {
			if one.Kind != jobcredentials.Registry && !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

// JobCredentials counts the workflows with active nodes that have credentials, by jobcredentials.States.
func (c *Controller) JobCredentials() map[string]int { return c.freshness.States() }
