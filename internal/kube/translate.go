package kube

import (
	"context"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/jobcredentials"
	"htc.cern.ch/htcd/internal/joboptions"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/outputpush"
	"htc.cern.ch/htcd/internal/pool"
	"htc.cern.ch/htcd/internal/schedd"
)

// Site holds the administrator's settings for all jobs.
type Site struct {
	backend.Policy
	ImageRegistry    string
	Binds            []string
	CallbackURL      string
	CallbackCA       string // PEM text, usually empty
	CallbackDeadline time.Duration
	Sender           string   // path of a binary to send with each job, usually empty
	AllowOptions     []string // submit commands and +Attributes beyond schedd's own list
	AllowImages      []string // of schedd.Description; none: every image
	AllowSchemes     []string // of schedd.Description; none: no URLs
	MaxQueue         int      // procs of one HTCJob; 0: no limit
	MaxOpen          int      // open procs of one namespace; 0: no limit
	MaxOutput        int64    // MiB of output per job; 0: no limit
	MaxInput         int64    // bytes of inputs that one HTCJob's procs get together; 0: no limit
	Inputs           inputs.Rules
}

// render returns the sandbox of one attempt of an HTCJob, with the items of its procs if there are such. Its errors are of kind
// schedd.Refused.
func (s Site) render(job *v1alpha1.HTCJob, p pool.Pool, attempt int, points []string, credentials ...schedd.Credential) (schedd.Sandbox, error) {
	d, err := s.describe(job, p, attempt, points)
	if err != nil {
		return schedd.Sandbox{}, err
	}
	if err := s.fitCredentials(credentials, d.Queue); err != nil {
		return schedd.Sandbox{}, err
	}
	if len(credentials) > 0 {
		d.Credentials, d.PullURL = credentials, jobcredentials.URL(s.CallbackURL, string(job.UID), attempt)
	}
	return d.Render()
}

// notShown stands for what only the jobs may read.
const notShown = "(not shown)\n"

// Preview returns what would be sent of an HTCJob by a pool, without the content of its credentials, and what holds for it then.
func (s Site) Preview(ctx context.Context, job *v1alpha1.HTCJob, p pool.Pool, tables inputs.ConfigMaps) (schedd.Sandbox, *v1alpha1.Effective, error) {
	if err := pool.Check(p.Name, p.Spec, s.PoolRules()); err != nil {
		return schedd.Sandbox{}, nil, err
	}
	points, err := readItems(ctx, job, tables)
	if err != nil {
		return schedd.Sandbox{}, nil, err
	}
	var credentials []schedd.Credential
	for _, credential := range s.credentialsOf(job) {
		credentials = append(credentials, sent(credential, notShown))
	}
	sandbox, err := s.render(job, p, 1, points.items, credentials...)
	return sandbox, p.Effective(sandbox.Requests), err
}

// describe translates an HTCJob into HTCondor's terms. Its errors are of kind schedd.Refused.
func (s Site) describe(job *v1alpha1.HTCJob, p pool.Pool, attempt int, points []string) (schedd.Description, error) {
	queue := job.Queue()
	if len(points) > 0 {
		queue = len(points)
	}
	if _, err := p.Target(job, s.Policy); err != nil {
		return schedd.Description{}, err
	}
	if err := s.Inputs.Check(job); err != nil {
		return schedd.Description{}, err
	}
	if err := outputpush.Check(s.Inputs.Registries, !s.Inputs.NoOutput, destinations(job, attempt), queue); err != nil {
		return schedd.Description{}, err
	}
	if err := s.checkLogin(job); err != nil {
		return schedd.Description{}, err
	}
	options, err := joboptions.Of(job.Spec)
	if err != nil {
		return schedd.Description{}, err
	}
	defaults, err := p.Defaults()
	if err != nil {
		return schedd.Description{}, err
	}
	sent := tag(job, attempt)
	sent.SpecHash, sent.Pool = job.SpecHash(), p.Name
	return schedd.Description{
		Tag:              sent,
		BatchName:        job.BatchName(),
		Queue:            queue,
		Items:            points,
		Options:          job.Spec.HTCOpts,
		Allow:            s.AllowOptions,
		JobOptions:       options,
		Defaults:         defaults,
		Placement:        schedd.Placement(p.Spec.Placement),
		Environment:      environment(job.Spec),
		Inputs:           sandboxInputs(job.Spec),
		AllowSchemes:     s.AllowSchemes,
		Outputs:          outputs(job.Spec),
		Image:            job.Spec.Script.Image,
		ImageRegistry:    s.ImageRegistry,
		AllowImages:      s.AllowImages,
		PoolImages:       p.Spec.Images,
		Command:          job.Spec.Script.Command,
		Source:           job.Spec.Script.Source,
		Binds:            s.Binds,
		CallbackURL:      s.CallbackURL,
		CallbackCA:       s.CallbackCA,
		CallbackDeadline: s.CallbackDeadline,
		Sender:           s.Sender,
		MaxOutput:        s.MaxOutput,
	}, nil
}

func environment(spec v1alpha1.HTCJobSpec) map[string]string {
	variables := make(map[string]string, len(spec.Environment))
	for name, text := range spec.Environment {
		variables[name] = string(text)
	}
	return variables
}

func outputs(spec v1alpha1.HTCJobSpec) []schedd.Output {
	var all []schedd.Output
	for _, o := range spec.Outputs {
		all = append(all, schedd.Output{Path: o.Path, URL: o.URL})
	}
	return all
}

func tag(job *v1alpha1.HTCJob, attempt int) schedd.Tag {
	return schedd.Tag{UID: string(job.UID), Attempt: attempt, Namespace: job.Namespace, Name: job.Name}
}
