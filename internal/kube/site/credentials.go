package site

import (
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

// CredentialsOf lists what the jobs get of spec.credentials, and by default of their pool. Those for registries are
// among it if a node may fetch the image with them.
func (s Site) CredentialsOf(job *v1alpha1.HTCJob, p pool.Pool) []jobcredentials.Credential {
	var list []jobcredentials.Credential
	job = complete(job, p)
	registry := submit.ImageRegistry(job.Spec.Script.Image, s.ImageRegistry)
	for _, c := range job.Spec.Credentials {
		if c.As == v1alpha1.Registry && !s.Inputs.Registries.Allow(registry) {
			continue
		}
		list = append(list, jobcredentials.Credential{
			Name:     c.Name,
			Secret:   c.SecretKeyRef.Name,
			Key:      c.SecretKeyRef.Key,
			Kind:     jobcredentials.Kind(c.As),
			Registry: registry,
		})
	}
	return list
}

// checkLogin refuses credentials for registries that could never be used.
func (s Site) checkLogin(job *v1alpha1.HTCJob) error {
	if inputs.HasArtifacts(job.Spec) {
		return nil
	}
	registry := submit.ImageRegistry(job.Spec.Script.Image, s.ImageRegistry)
	for _, c := range job.Spec.Credentials {
		switch {
		case c.As != v1alpha1.Registry:
		case registry == "":
			return condor.Refusal(
				"spec.credentials: %s: as Registry it serves artifacts in spec.inputs and spec.outputs, and a script.image of a registry, and there are none",
				c.Name,
			)
		case !s.Inputs.Registries.Allow(registry):
			return condor.Refusal(
				"spec.credentials: %s: %s, the registry of script.image, is not one that the administrator of htcd allows (--allow-registries)",
				c.Name,
				registry,
			)
		}
	}
	return nil
}

// Sent is a credential as it comes with the sandbox.
func Sent(c jobcredentials.Credential, content string) submit.Credential {
	return submit.Credential{
		Name:     c.Name,
		Variable: c.Kind.Variable(),
		Content:  content,
		Registry: c.Kind == jobcredentials.Registry,
	}
}

// fitCredentials refuses credentials whose copies for all procs are more than an HTCJob may bring.
func (s Site) fitCredentials(credentials []submit.Credential, procs int) error {
	size := int64(0)
	for _, c := range credentials {
		size += int64(len(c.Content))
	}
	if s.MaxInput > 0 && size*int64(procs) > s.MaxInput {
		return condor.Refusal(
			"spec.credentials: %d bytes, counted for each of %d jobs, are more than the %d MiB that one HTCJob may bring here (--max-input): make it several HTCJobs",
			size,
			procs,
			s.MaxInput>>20,
		)
	}
	return nil
}

// Tokens returns those of a run for its sandbox, and the hash of the first, which is for callbacks.
func (s Site) Tokens(job *v1alpha1.HTCJob, p pool.Pool) (all []string, hash []byte) {
	token, hash := notify.NewToken()
	if len(s.CredentialsOf(job, p)) == 0 {
		return []string{token}, hash
	}
	return []string{token, jobcredentials.Token(hash)}, hash
}
