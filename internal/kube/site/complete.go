package site

import (
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/target/pool"
)

// complete returns an HTCJob with its pool's image and credentials where it says nothing of its own. The argument stays
// as it is. The other defaults are added to the submit description: see schedd.Defaults.
func complete(job *v1alpha1.HTCJob, p pool.Pool) *v1alpha1.HTCJob {
	d := p.Spec.Defaults
	if d == nil || d.Image == "" && len(d.Credentials) == 0 {
		return job
	}
	whole := *job
	if whole.Spec.Script.Image == "" {
		whole.Spec.Script.Image = d.Image
	}
	whole.Spec.Credentials = slices.Clip(whole.Spec.Credentials)
	for _, c := range d.Credentials {
		if !brings(job, c) {
			whole.Spec.Credentials = append(whole.Spec.Credentials, c)
		}
	}
	return &whole
}

// brings reports whether an HTCJob has a file of its own in the place of a credential.
func brings(job *v1alpha1.HTCJob, c v1alpha1.Credential) bool {
	variable := jobcredentials.Kind(c.As).Variable()
	if _, sets := job.Spec.Environment[variable]; sets {
		return true
	}
	return slices.ContainsFunc(job.Spec.Credentials, func(own v1alpha1.Credential) bool {
		return own.Name == c.Name || variable != "" && own.As == c.As
	})
}
