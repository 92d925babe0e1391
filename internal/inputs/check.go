package inputs

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs/uploads"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

const maxInputs = 100

var (
	objectRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	keyRE    = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)
	keyOfRE  = regexp.MustCompile(`^([-._a-zA-Z0-9]|\{\{(item\.[A-Za-z_][A-Za-z0-9_]*|proc)\}\})+$`) // of each job
)

// Rules are what an administrator's settings mean for inputs.
type Rules struct {
	Accounts   []string // names of the Secrets that hold accounts: no input may name them
	NoOutput   bool     // htcd keeps no output, so that no jobRef can be followed
	Registries artifact.Registries
}

// Check refuses inputs that can never be brought, by the spec alone. Names of files are checked by schedd.
func (r Rules) Check(job *v1alpha1.HTCJob) error {
	if n := len(job.Spec.Inputs); n > maxInputs {
		return condor.Refusal("spec.inputs: expected at most %d, found %d: pack files into one archive", maxInputs, n)
	}
	for _, in := range job.Spec.Inputs {
		if err := r.checkOne(job, in); err != nil {
			return condor.Refusal("spec.inputs: %s: %w", cmp.Or(in.Name, in.Artifact), err)
		}
	}
	return r.checkRegistries(job)
}

// checkRegistries refuses credentials for registries that could never be used.
func (r Rules) checkRegistries(job *v1alpha1.HTCJob) error {
	for _, c := range job.Spec.Credentials {
		switch {
		case c.As != v1alpha1.Registry:
		case slices.Contains(r.Accounts, c.SecretKeyRef.Name):
			return condor.Refusal(
				"spec.credentials: %s: the secret %s holds an account of HTCondor, which serves no registry",
				c.Name,
				c.SecretKeyRef.Name,
			)
		}
	}
	return nil
}

// HasArtifacts reports whether a spec names artifacts.
func HasArtifacts(spec v1alpha1.HTCJobSpec) bool {
	return slices.ContainsFunc(spec.Inputs, func(in v1alpha1.Input) bool { return in.Artifact != "" }) ||
		slices.ContainsFunc(spec.Outputs, func(o v1alpha1.Output) bool { return o.Artifact != "" })
}

func (r Rules) checkOne(job *v1alpha1.HTCJob, in v1alpha1.Input) error {
	sources := 0
	for _, named := range []bool{in.ConfigMapKeyRef != nil, in.SecretKeyRef != nil, in.JobRef != nil, in.Artifact != "", in.URL != "", in.Upload != ""} {
		if named {
			sources++
		}
	}
	if sources != 1 {
		return condor.Refusal(
			"expected exactly one source (configMapKeyRef, secretKeyRef, jobRef, artifact, url or upload), found %d",
			sources,
		)
	}
	switch {
	case in.URL != "" && in.Optional:
		return condor.Refusal("an input from a url cannot be optional: HTCondor holds a job whose file it cannot fetch")
	case in.URL != "":
		return nil // schedd checks it
	case in.Upload != "":
		if _, err := uploads.Digest(in.Upload); err != nil {
			return condor.Refusal("%w", err)
		}
		return nil
	case in.ConfigMapKeyRef != nil:
		return checkKey(*in.ConfigMapKeyRef, keyOfRE)
	case in.SecretKeyRef != nil:
		if slices.Contains(r.Accounts, in.SecretKeyRef.Name) {
			return condor.Refusal(
				"the secret %s holds an account of HTCondor, which no job may have: put what the job needs into another secret",
				in.SecretKeyRef.Name,
			)
		}
		return checkKey(*in.SecretKeyRef, keyRE)
	case in.Artifact != "":
		if err := r.Registries.CheckReference(in.Artifact); err != nil {
			return condor.Refusal("%w", err)
		}
		return nil
	}
	return r.checkJobRef(job, *in.JobRef)
}

func checkKey(ref v1alpha1.KeyRef, key *regexp.Regexp) error {
	switch {
	case !isName(ref.Name):
		return condor.Refusal("name %q: expected a Kubernetes name", ref.Name)
	case len(ref.Key) > 253 || !key.MatchString(ref.Key):
		return condor.Refusal("key %q: expected letters, digits and - _ .", ref.Key)
	}
	return nil
}

func (r Rules) checkJobRef(job *v1alpha1.HTCJob, ref v1alpha1.JobRef) error {
	switch {
	case r.NoOutput:
		return condor.Refusal("this htcd keeps no output of jobs, so there is nothing that a jobRef could name")
	case !isName(ref.Name):
		return condor.Refusal("name %q: expected a Kubernetes name", ref.Name)
	case ref.Name == self(job):
		return condor.Refusal("the jobRef names this HTCJob itself")
	case !isPath(ref.Path):
		return condor.Refusal("path %q: expected a relative path without '.', '..' and control characters", ref.Path)
	case isProc(ref.Proc, v1alpha1.ProcAll) && items.Varies(ref.Path):
		return condor.Refusal("path %q: expected the same for all jobs beside proc All", ref.Path)
	}
	if p := ref.Proc; p != nil &&
		(p.Type == intstr.Int && p.IntVal < 0 ||
			p.Type == intstr.String && !isProc(p, v1alpha1.ProcSame) && !isProc(p, v1alpha1.ProcAll)) {
		return condor.Refusal("proc %q: expected Same, All, or the number of a job", p.String())
	}
	return nil
}

func isPath(s string) bool {
	return len(s) <= 1024 && !strings.ContainsFunc(s, unicode.IsControl) && !path.IsAbs(s) && path.Clean(s) == s &&
		s != "." && s != ".." && !strings.HasPrefix(s, "../")
}

func isName(s string) bool { return len(s) <= 253 && objectRE.MatchString(s) }

func isProc(p *intstr.IntOrString, word string) bool {
	return p != nil && p.Type == intstr.String && p.StrVal == word
}

// PerProc reports whether every proc gets a file of its own.
func PerProc(in v1alpha1.Input) bool { return ofSame(in) || items.Varies(sourceOf(in)) }

// ofSame reports whether every proc gets the file of the proc with its number.
func ofSame(in v1alpha1.Input) bool {
	return in.JobRef != nil && isProc(in.JobRef.Proc, v1alpha1.ProcSame)
}

// sourceOf is what of an input's source may be filled for each job.
func sourceOf(in v1alpha1.Input) string {
	switch {
	case in.ConfigMapKeyRef != nil:
		return in.ConfigMapKeyRef.Key
	case in.JobRef != nil:
		return in.JobRef.Path
	}
	return in.URL
}

// Sources names the HTCJobs that a spec's jobRefs name, each once, in their order.
func Sources(spec v1alpha1.HTCJobSpec) []string {
	var names []string
	if from := spec.ItemsFrom; from != nil && from.JobRef != nil {
		names = append(names, from.JobRef.Name)
	}
	for _, in := range spec.Inputs {
		if in.JobRef != nil && !slices.Contains(names, in.JobRef.Name) {
			names = append(names, in.JobRef.Name)
		}
	}
	return names
}
