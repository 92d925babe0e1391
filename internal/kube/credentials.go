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
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
)

// credentialsOf lists what of spec.credentials the jobs get. Those for registries are among it if a node may fetch the image with them.
func (s Site) credentialsOf(job *v1alpha1.HTCJob) []jobcredentials.Credential {
	var list []jobcredentials.Credential
	registry := schedd.ImageRegistry(job.Spec.Script.Image, s.ImageRegistry)
	for _, c := range job.Spec.Credentials {
		if c.As == v1alpha1.Registry && !s.Inputs.Registries.Allow(registry) {
			continue
		}
		list = append(list, jobcredentials.Credential{
			Name: c.Name, Secret: c.SecretKeyRef.Name, Key: c.SecretKeyRef.Key, Kind: jobcredentials.Kind(c.As), Registry: registry,
		})
	}
	return list
}

// checkLogin refuses credentials for registries that could never be used.
func (s Site) checkLogin(job *v1alpha1.HTCJob) error {
	if inputs.HasArtifacts(job.Spec) {
		return nil
	}
	registry := schedd.ImageRegistry(job.Spec.Script.Image, s.ImageRegistry)
	for _, c := range job.Spec.Credentials {
		switch {
		case c.As != v1alpha1.Registry:
		case registry == "":
			return schedd.Refusal("spec.credentials: %s: as Registry it serves artifacts in spec.inputs and spec.outputs, and a script.image of a registry, and there are none", c.Name)
		case !s.Inputs.Registries.Allow(registry):
			return schedd.Refusal("spec.credentials: %s: %s, the registry of script.image, is none that the administrator of htcd allows (--allow-registries)",
				c.Name, registry)
		}
	}
	return nil
}

// credentials reads those of an HTCJob as they are now. Errors of kind schedd.Refused are about the HTCJob; while a Secret is
// missing it waits.
func (c *Controller) credentials(ctx context.Context, job *v1alpha1.HTCJob) ([]schedd.Credential, error) {
	var all []schedd.Credential
	var without *jobsecrets.Unusable // a login for the registry of the image
	for _, credential := range c.Site.credentialsOf(job) {
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
		all = append(all, sent(credential, string(content)))
	}
	loggedIn := slices.ContainsFunc(all, func(c schedd.Credential) bool { return c.Registry })
	if without != nil && !loggedIn && !inputs.HasArtifacts(job.Spec) {
		return nil, &inputs.Waiting{Reason: without.Reason, Message: without.Message}
	}
	return all, nil
}

func sent(c jobcredentials.Credential, content string) schedd.Credential {
	return schedd.Credential{Name: c.Name, Variable: c.Kind.Variable(), Content: content, Registry: c.Kind == jobcredentials.Registry}
}

// fitCredentials refuses credentials whose copies for all procs are more than an HTCJob may bring.
func (s Site) fitCredentials(credentials []schedd.Credential, procs int) error {
	size := int64(0)
	for _, c := range credentials {
		size += int64(len(c.Content))
	}
	if s.MaxInput > 0 && size*int64(procs) > s.MaxInput {
		return schedd.Refusal("spec.credentials: %d bytes, counted for each of %d jobs, are more than the %d MiB that one HTCJob may bring here (--max-input): make it several HTCJobs",
			size, procs, s.MaxInput>>20)
	}
	return nil
}

// tokens returns those of a run for its sandbox, and the hash of the first, which is for callbacks.
func (s Site) tokens(job *v1alpha1.HTCJob) (all []string, hash []byte) {
	token, hash := notify.NewToken()
	if len(s.credentialsOf(job)) == 0 {
		return []string{token}, hash
	}
	return []string{token, jobcredentials.Token(hash)}, hash
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
		r.Active, r.Credentials = true, slices.Clip(c.Site.credentialsOf(job))
	}
	return r, nil
}

// holders lists the HTCJobs whose credentials are watched.
func (c *Controller) holders() []jobcredentials.Holder {
	var all []jobcredentials.Holder
	for _, object := range c.Informer.GetStore().List() {
		if job := object.(*v1alpha1.HTCJob); len(job.Spec.Credentials) > 0 && job.Status.Active > 0 && job.DeletionTimestamp == nil {
			all = append(all, jobcredentials.Holder{Key: job.Namespace + "/" + job.Name, Namespace: job.Namespace, Credentials: withEnds(c.Site.credentialsOf(job))})
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
