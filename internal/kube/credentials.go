package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/jobcredentials"
	"htc.cern.ch/htcd/internal/jobsecrets"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/site"
)

// credentials reads those of an HTCJob as they are now. Errors of kind schedd.Refused are about the HTCJob; while a Secret is
// missing it waits.
func (c *Controller) credentials(ctx context.Context, job *v1alpha1.HTCJob) ([]schedd.Credential, error) {
	var all []schedd.Credential
	var without *jobsecrets.Unusable // a login for the registry of the image
	for _, credential := range c.Site.CredentialsOf(job) {
		content, err := credential.Read(ctx, c.JobSecrets, job.Namespace, c.Now())
		e, unusable := errors.AsType[*jobsecrets.Unusable](err)
		switch {
		case unusable && credential.Kind == jobcredentials.Registry && e.Reason == jobcredentials.ReasonUnusable:
			without = e // it may serve an artifact, or another one the image
			continue
		case unusable && e.Reason == jobsecrets.ReasonAccount:
			return nil, schedd.Refusal("spec.credentials: %s", e.Message)
		case unusable:
			return nil, &inputs.Waiting{Reason: e.Reason, Message: fmt.Sprintf("credential %s: %s", credential.Name, e.Message)}
		case err != nil:
			return nil, fmt.Errorf("credential %s: %w", credential.Name, err)
		}
		all = append(all, site.Sent(credential, string(content)))
	}
	loggedIn := slices.ContainsFunc(all, func(c schedd.Credential) bool { return c.Registry })
	if without != nil && !loggedIn && !inputs.HasArtifacts(job.Spec) {
		return nil, &inputs.Waiting{Reason: without.Reason, Message: without.Message}
	}
	return all, nil
}

// CredentialsOf implements jobcredentials.Runs.
func (c *Controller) CredentialsOf(ctx context.Context, uid string, attempt int) (jobcredentials.Run, error) {
	var run ledger.Run
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		run, err = tx.Run(uid, attempt)
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
	job := c.get(run.Namespace + "/" + run.Name)
	if job != nil && string(job.UID) == uid && run.State == ledger.Submitted && run.Ended.IsZero() && job.SpecHash() == run.SpecHash {
		r.Active, r.Credentials = true, slices.Clip(c.Site.CredentialsOf(job))
	}
	return r, nil
}

// holders lists the HTCJobs whose credentials are watched.
func (c *Controller) holders() []jobcredentials.Holder {
	var all []jobcredentials.Holder
	for _, object := range c.Informer.GetStore().List() {
		if job := object.(*v1alpha1.HTCJob); len(job.Spec.Credentials) > 0 && job.Status.Active > 0 && job.DeletionTimestamp == nil {
			all = append(all, jobcredentials.Holder{Key: job.Namespace + "/" + job.Name, Namespace: job.Namespace, Credentials: withEnds(c.Site.CredentialsOf(job))})
		}
	}
	return all
}

// withEnds leaves out logins for registries: nothing is known of their ends.
func withEnds(all []jobcredentials.Credential) []jobcredentials.Credential {
	return slices.DeleteFunc(all, func(c jobcredentials.Credential) bool { return c.Kind == jobcredentials.Registry })
}

func (c *Controller) freshOf(key string) *lifecycle.Fresh {
	f, known := c.freshness.Of(key)
	if !known {
		return nil
	}
	return &lifecycle.Fresh{Is: f.Fresh, Reason: f.Reason, Message: f.Message}
}

// JobCredentials counts the HTCJobs with active jobs that have credentials, by jobcredentials.States.
func (c *Controller) JobCredentials() map[string]int { return c.freshness.States() }
