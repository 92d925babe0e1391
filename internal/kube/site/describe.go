package site

import (
	"cmp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify/traces"
	"htc.cern.ch/htcd/internal/output/push"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/joboptions"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Render returns the sandbox of one attempt of an HTCJob, with the items of its procs if there are such. Its errors are
// of kind schedd.Refused.
func (s Site) Render(
	job *v1alpha1.HTCJob,
	p pool.Pool,
	attempt int,
	points []string,
	credentials ...submit.Credential,
) (submit.Sandbox, error) {
	return s.RenderSome(job, p, attempt, points, nil, credentials...)
}

// RenderSome is Render for those of the jobs that have these numbers; none: for all.
func (s Site) RenderSome(
	job *v1alpha1.HTCJob,
	p pool.Pool,
	attempt int,
	points []string,
	numbers []int,
	credentials ...submit.Credential,
) (submit.Sandbox, error) {
	d, err := s.Describe(job, p, attempt, points)
	if err != nil {
		return submit.Sandbox{}, err
	}
	if len(numbers) > 0 {
		d.Numbers, d.Queue, d.Items = numbers, len(numbers), nil
		for _, n := range numbers {
			if n < len(points) {
				d.Items = append(d.Items, points[n])
			}
		}
	}
	d.Parallelism = AtOnce(job.Spec, d.Queue, s.FactoryAbove)
	if d.Parallelism == 0 && d.Queue > mostInCluster {
		return submit.Sandbox{}, condor.Refusal(
			"queue %d is more than %d, and htcd makes factories only of HTCJobs with spec.parallelism here (--factory-above 0): "+
				"set that, or make it several HTCJobs",
			d.Queue,
			mostInCluster,
		)
	}
	if err := s.fitCredentials(credentials, d.Queue); err != nil {
		return submit.Sandbox{}, err
	}
	if len(credentials) > 0 {
		d.Credentials, d.PullURL = credentials, jobcredentials.URL(s.CallbackURL, string(job.UID), attempt)
	}
	return d.Render()
}

// Describe translates an HTCJob into HTCondor's terms. Its errors are of kind schedd.Refused.
func (s Site) Describe(job *v1alpha1.HTCJob, p pool.Pool, attempt int, points []string) (submit.Description, error) {
	sent := Tag(job, attempt)
	sent.SpecHash, sent.Pool, sent.Creator = job.SpecHash(), p.Name, s.CreatorOf(job.Annotations)
	if job = complete(job, p); job.Spec.Script.Image == "" {
		return submit.Description{}, noImage(p)
	}
	if job.Spec.Script.WritableRoot && !s.WritableRoot {
		return submit.Description{}, condor.Refusal(
			"spec.script.writableRoot: the administrator of htcd does not allow it (--allow-writable-root): let the script write to its own directory, /tmp or HOME, or change the image",
		)
	}
	queue := job.Queue()
	if len(points) > 0 {
		queue = len(points)
	}
	if err := checkSuccessPolicy(job.Spec.SuccessPolicy, queue); err != nil {
		return submit.Description{}, err
	}
	if _, err := p.Target(job, s.Policy); err != nil {
		return submit.Description{}, err
	}
	if err := s.Inputs.Check(job); err != nil {
		return submit.Description{}, err
	}
	if err := push.Check(s.Inputs.Registries, !s.Inputs.NoOutput, Destinations(job, attempt), queue); err != nil {
		return submit.Description{}, err
	}
	if err := s.checkLogin(job); err != nil {
		return submit.Description{}, err
	}
	options, err := joboptions.Of(job.Spec)
	if err != nil {
		return submit.Description{}, err
	}
	defaults, err := p.Defaults()
	if err != nil {
		return submit.Description{}, err
	}
	interactive, keep, err := waits(job.Spec)
	if err != nil {
		return submit.Description{}, err
	}
	parent := ""
	if s.Traces {
		parent = traces.Parent(string(job.UID), attempt, traces.Run)
	}
	return submit.Description{
		Tag:              sent,
		BatchName:        job.BatchName(),
		Queue:            queue,
		Items:            points,
		Options:          job.Spec.HTCOpts,
		Allow:            s.AllowOptions,
		Attributes:       slices.Concat(s.Attributes, p.Spec.Attributes),
		JobOptions:       options,
		Defaults:         defaults,
		Placement:        submit.Placement(p.Spec.Placement),
		Environment:      environment(job.Spec),
		Traceparent:      parent,
		Inputs:           sandboxInputs(job.Spec),
		AllowSchemes:     s.AllowSchemes,
		Outputs:          outputs(job.Spec),
		Image:            job.Spec.Script.Image,
		ImageRegistry:    s.ImageRegistry,
		AllowImages:      s.AllowImages,
		PoolImages:       p.Spec.Images,
		Command:          job.Spec.Script.Command,
		Source:           job.Spec.Script.Source,
		Executable:       job.Spec.Script.Executable,
		Args:             job.Spec.Script.Args,
		Before:           part(job.Spec.Script.Before),
		After:            part(job.Spec.Script.After),
		Workdir:          job.Spec.Script.Workdir,
		WritableRoot:     job.Spec.Script.WritableRoot,
		Binds:            s.Binds,
		CallbackURL:      s.CallbackURL,
		CallbackCA:       s.CallbackCA,
		CallbackAlso:     s.CallbackAlso,
		CallbackDeadline: s.CallbackDeadline,
		CallbackStart:    s.CallbackStart,
		Sender:           s.sender(job.Spec),
		Nodes:            nodes(job.Spec),
		Interactive:      interactive,
		KeepOnFailure:    keep,
		Checkpoint:       checkpoint(job.Spec),
		MaxOutput:        s.MaxOutput,
	}, nil
}

func part(p *v1alpha1.ScriptPart) *submit.Part {
	if p == nil {
		return nil
	}
	return &submit.Part{Command: p.Command, Source: p.Source, Args: p.Args}
}

func nodes(spec v1alpha1.HTCJobSpec) int {
	if spec.Nodes == nil {
		return 0
	}
	return int(*spec.Nodes)
}

// sender returns the program that goes along with the jobs: those of several nodes need htcd itself.
func (s Site) sender(spec v1alpha1.HTCJobSpec) string {
	if spec.Nodes == nil {
		return s.Sender
	}
	return cmp.Or(s.Sender, s.Program)
}

// noImage refuses a script without an image.
func noImage(p pool.Pool) error {
	if p.None() {
		return condor.Refusal(
			"spec.script.image: name the image of the container in which the script runs, such as centos",
		)
	}
	return condor.Refusal(
		"spec.script.image: name the image of the container in which the script runs, such as centos: HTCPool %s has no default (defaults.image)",
		p.Name,
	)
}

func checkpoint(spec v1alpha1.HTCJobSpec) *submit.Checkpoint {
	if spec.Checkpoint == nil {
		return nil
	}
	c := submit.Checkpoint{ExitCode: int(spec.Checkpoint.ExitCode), OnEviction: spec.Checkpoint.OnEviction}
	for _, file := range spec.Checkpoint.Files {
		c.Files = append(c.Files, string(file))
	}
	return &c
}

// mostInCluster is how many jobs an attempt may have that is no factory: all of them are in the schedd's queue at once.
const mostInCluster = 100_000

// AtOnce returns how many of an attempt's jobs a factory of HTCondor's may have in the queue at a time, 0 if they are
// sent as one cluster. More jobs than above are a factory, too, unless that is 0: the schedd has ads and directories
// only for those that were made, and makes none while enough wait for a slot.
func AtOnce(spec v1alpha1.HTCJobSpec, jobs, above int) int {
	switch {
	case spec.Parallelism != nil:
		return int(*spec.Parallelism)
	case above > 0 && jobs > above:
		return jobs
	}
	return 0
}

func environment(spec v1alpha1.HTCJobSpec) map[string]string {
	variables := make(map[string]string, len(spec.Environment))
	for name, text := range spec.Environment {
		variables[name] = string(text)
	}
	return variables
}

func outputs(spec v1alpha1.HTCJobSpec) []submit.Output {
	var all []submit.Output
	for _, o := range spec.Outputs {
		if o.Path == "" { // it stands for all that is brought back: see package workflow
			continue
		}
		all = append(all, submit.Output{Path: o.Path, URL: o.URL})
	}
	return all
}

// Tag is what the ads of an attempt carry.
func Tag(job *v1alpha1.HTCJob, attempt int) condor.Tag {
	return condor.Tag{UID: string(job.UID), Attempt: attempt, Namespace: job.Namespace, Name: job.Name}
}

// sandboxInputs says what of spec.inputs comes with the sandbox.
func sandboxInputs(spec v1alpha1.HTCJobSpec) []submit.Input {
	var list []submit.Input
	for _, in := range spec.Inputs {
		if in.Name == "" { // it stands for files of an artifact, which keep their names
			continue
		}
		list = append(
			list,
			submit.Input{
				Name: in.Name, OfProc: inputs.PerProc(in), Secret: in.SecretKeyRef != nil, URL: in.URL,
				Unpack: submit.Unpack(in.Unpack),
			},
		)
	}
	return list
}

// SecretInputs lists the names of inputs that are never kept as output.
func SecretInputs(spec v1alpha1.HTCJobSpec) string {
	var names []string
	for _, in := range sandboxInputs(spec) {
		if in.Secret {
			names = append(names, in.Name)
		}
	}
	return strings.Join(names, " ")
}

// Destinations lists the outputs of an attempt that are not only brought back. The number of a proc is left open.
func Destinations(job *v1alpha1.HTCJob, attempt int) []ledger.Destination {
	var all []ledger.Destination
	for i, o := range job.Spec.Outputs {
		if to := Tag(job, attempt).Destination; o.URL+o.Artifact != "" {
			all = append(
				all,
				ledger.Destination{
					Number:   i,
					Path:     o.Path,
					URL:      to(o.URL, "{proc}"),
					Artifact: to(o.Artifact, "{proc}"),
				},
			)
		}
	}
	return all
}
