package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

// ReadCredentials reads those of an HTCJob as they are now. Errors of kind schedd.Refused are about the HTCJob; while a
// Secret is missing the error is an *inputs.Waiting.
func (s Site) ReadCredentials(
	ctx context.Context,
	secrets jobcredentials.Secrets,
	job *v1alpha1.HTCJob,
	by pool.Pool,
	now time.Time,
) ([]submit.Credential, error) {
	var all []submit.Credential
	var without *jobsecrets.Unusable // a login for the registry of the image
	for _, credential := range s.CredentialsOf(job, by) {
		content, err := credential.Read(ctx, secrets, job.Namespace, now)
		e, unusable := errors.AsType[*jobsecrets.Unusable](err)
		switch {
		case unusable && credential.Kind == jobcredentials.Registry && e.Reason == jobcredentials.ReasonUnusable:
			without = e // it may serve an artifact, or another one the image
			continue
		case unusable && e.Reason == jobsecrets.ReasonAccount:
			return nil, condor.Refusal("%s: %s", origin(job, by, credential.Name), e.Message)
		case unusable:
			return nil, &inputs.Waiting{Reason: e.Reason, Message: origin(job, by, credential.Name) + ": " + e.Message}
		case err != nil:
			return nil, fmt.Errorf("%s: %w", origin(job, by, credential.Name), err)
		}
		all = append(all, Sent(credential, string(content)))
	}
	loggedIn := slices.ContainsFunc(all, func(c submit.Credential) bool { return c.Registry })
	if without != nil && !loggedIn && !inputs.HasArtifacts(job.Spec) {
		return nil, &inputs.Waiting{Reason: without.Reason, Message: without.Message}
	}
	return all, nil
}

// origin says who asks for a credential.
func origin(job *v1alpha1.HTCJob, by pool.Pool, name string) string {
	if slices.ContainsFunc(job.Spec.Credentials, func(own v1alpha1.Credential) bool { return own.Name == name }) {
		return "credential " + name
	}
	return "credential " + name + " of HTCPool " + by.Name
}
