package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// What htcd itself brings for the steps of a DAG is staged as the inputs of HTCJobs are: read once, before the intent.
// Each input is there once, whatever the number of nodes, and steps that name the same one share it.

// bringing is one input of steps, or what a node pulls from a registry, with its directory below schedd.InputsDir.
type bringing struct {
	dir  string
	job  *v1alpha1.HTCJob // has this input alone, and the credentials of the step
	pull string           // the path that is pulled; empty: it is an input
}

// mostPulled is how many artifacts the nodes of one DAG may pull.
const mostPulled = 1000

// list sets what is brought for the DAG, and for which nodes. Its errors are of kind schedd.Refused.
func (p *plannedDAG) list(w *v1alpha1.HTCWorkflow) error {
	known := map[string]string{} // directories, by what they hold
	p.inputsOf = map[int][]string{}
	for _, i := range p.steps {
		if !p.runs(i) {
			continue
		}
		job := stepJob(w, p.graph, i)
		for _, in := range job.Spec.Inputs {
			switch {
			case inputs.PerProc(in):
				return condor.Refusal(
					"step %s: spec.inputs: %s: jobRef.proc Same, {{item.NAME}} and {{proc}} cannot be used in a workflow: name one job, or All, and one file for all jobs",
					p.graph.Steps[i].Name,
					in.Name,
				)
			case in.URL != "" || in.Name == "":
				continue
			}
			alone := withInput(job, in)
			text, err := json.Marshal([]any{in, alone.Spec.Credentials})
			if err != nil {
				return err
			}
			dir, there := known[string(text)]
			if !there {
				dir = fmt.Sprintf("in%d", len(known))
				known[string(text)] = dir
				p.brought = append(p.brought, bringing{dir: dir, job: alone})
			}
			p.inputsOf[i] = append(p.inputsOf[i], dir)
		}
	}
	return p.listPulls(w)
}

// listPulls adds what nodes pull from registries.
func (p *plannedDAG) listPulls(w *v1alpha1.HTCWorkflow) error {
	seen, pulled := map[string]bool{}, 0
	for number, n := range p.nodes {
		if p.kept.has(number) {
			continue
		}
		for k, pull := range p.graph.Steps[n.Step].StepWork.Pull {
			dir := artifactDir(n, k)
			if pull.Artifact == "" || seen[dir] {
				continue
			}
			seen[dir] = true
			if pulled++; pulled > mostPulled {
				return condor.Refusal(
					"step %s: pull: expected at most %d artifacts for all sequences together: let the scripts fetch them, or put what all need into one artifact in inputs",
					p.graph.Steps[n.Step].Name,
					mostPulled,
				)
			}
			in := v1alpha1.Input{Artifact: reference(pull.Artifact, p.graph.JobID(n), pull.Tag)}
			p.brought = append(
				p.brought,
				bringing{dir: dir, job: withInput(stepJob(w, p.graph, n.Step), in), pull: pull.Path},
			)
		}
	}
	return nil
}

// artifactDir names the directory of the k-th pull of a node: the nodes of a step and sequence share it.
func artifactDir(n graph.Node, k int) string {
	switch {
	case n.Name != "":
		return fmt.Sprintf("s%d-a%d-x%d", n.Step, k, n.Index)
	case n.Sequence == graph.AllSequences:
		return fmt.Sprintf("s%d-a%d", n.Step, k)
	}
	return fmt.Sprintf("s%d-a%d-%d", n.Step, k, n.Sequence)
}

// withInput returns the job of a step with one input, and the credentials that this may need.
func withInput(job *v1alpha1.HTCJob, in v1alpha1.Input) *v1alpha1.HTCJob {
	alone := &v1alpha1.HTCJob{
		TypeMeta: job.TypeMeta, ObjectMeta: job.ObjectMeta, Spec: v1alpha1.HTCJobSpec{Inputs: []v1alpha1.Input{in}},
	}
	if in.Artifact != "" {
		alone.Spec.Credentials = slices.DeleteFunc(
			slices.Clone(job.Spec.Credentials),
			func(c v1alpha1.Credential) bool { return c.As != v1alpha1.Registry },
		)
	}
	return alone
}

// given names the directories whose contents a node gets of these.
func (p plannedDAG) given(n graph.Node) []string {
	dirs := slices.Clip(p.inputsOf[n.Step])
	for k, pull := range p.graph.Steps[n.Step].StepWork.Pull {
		if pull.Artifact != "" {
			dirs = append(dirs, artifactDir(n, k))
		}
	}
	return dirs
}

// resolve finds the sources of everything that is brought; nil if that is nothing.
func (c *Controller) resolve(ctx context.Context, key string, p plannedDAG) (*inputs.Ready, error) {
	if len(p.brought) == 0 {
		return nil, nil
	}
	b := inputs.Bringer{
		ConfigMaps: c.ConfigMaps, Secrets: c.JobSecrets, Uploads: c.Uploads, Jobs: c.Jobs, Store: c.JobOutput,
		Max: c.Site.MaxInput,
	}
	var references []string
	for _, what := range p.brought {
		references = append(references, inputs.References(what.job.Spec)...)
	}
	if len(references) > 0 {
		b.Artifacts = c.Artifacts.For(key, references)
	}
	parts := map[string]*inputs.Ready{}
	for _, what := range p.brought {
		part, err := b.Resolve(ctx, what.job, 1)
		if err != nil {
			return nil, noHTCJob(err, p.graph.Steps, what.job.Spec.Inputs[0].JobRef)
		}
		if what.pull != "" &&
			!part.Only(func(name string) bool { return output.Matches(what.pull, name) && !submit.Taken(name) }) {
			return nil, &inputs.Waiting{
				Reason:  reasonNotInArtifact,
				Message: fmt.Sprintf("the artifact %s has no %s", what.job.Spec.Inputs[0].Artifact, what.pull),
			}
		}
		parts[what.dir] = part
	}
	return inputs.Together(ctx, parts, c.Site.MaxInput)
}

// noHTCJob adds to an error about an HTCJob that is not there that a step has its name: its jobs are none, and never
// will be.
func noHTCJob(err error, steps []graph.Step, ref *v1alpha1.JobRef) error {
	wait, is := errors.AsType[*inputs.Waiting](err)
	if !is || wait.Reason != inputs.ReasonHTCJobNotFound || ref == nil ||
		!slices.ContainsFunc(steps, func(s graph.Step) bool { return string(s.Name) == ref.Name }) {
		return err
	}
	told := *wait
	told.Message += fmt.Sprintf(
		"; %s is a step of this HTCWorkflow, whose jobs are no HTCJobs: for a file of it write pull: [{from: %[1]s, path: %s}], for a table itemsFrom: {step: %[1]s, path: %[2]s}",
		ref.Name,
		ref.Path,
	)
	return &told
}

const reasonNotInArtifact = "NotInArtifact"

// stageInputs books room for what is staged of a DAG, brings what it needs into its directory, and names it in the run.
// What was staged for a recorded intent and is whole stays. The caller calls leave when nothing is staged any more.
func (c *Controller) stageInputs(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	p prepared,
	run *ledger.Run,
) (leave func(), err error) {
	if len(p.brought) == 0 {
		return c.sender.Room(*run, p.sandbox, output.Room{}, output.Room{})
	}
	if has, err := sending.HasInputs(*run, run.InputsDigest); err != nil {
		return nil, err
	} else if has {
		return c.sender.Room(*run, p.sandbox, output.Room{}, output.Taken(run.TempDir))
	}
	staging, end := reconciler.Staging(ctx, c.engine, w)
	defer end()
	ready, err := c.resolve(staging, keyOf(*run), p.plannedDAG)
	if err != nil {
		return nil, err
	}
	if leave, err = c.sender.Room(*run, p.sandbox, ready.Needs(), output.Room{}); err != nil {
		return nil, err
	}
	if err := c.sender.StageInputs(ready, run); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// reference names the artifact of a sequence.
func reference(artifact, jobid, tag string) string { return path.Join(artifact, jobid) + ":" + tag }

// tagOf is that of what a step pushes.
func tagOf(step v1alpha1.StepWork) string {
	if step.Push == nil {
		return ""
	}
	if step.Push.Tag != "" {
		return step.Push.Tag
	}
	return string(step.Name)
}

// registryVariables are those of a step's scripts about registries. They are empty where the step names none.
func registryVariables(g *graph.Graph, i int) map[string]string {
	step := g.Steps[i].StepWork
	all := map[string]string{"registry": "", "pull_tag": "", "push_tag": tagOf(step)}
	for _, pull := range slices.Backward(step.Pull) {
		switch from := slices.IndexFunc(g.Steps, func(s graph.Step) bool { return s.Name == pull.From }); {
		case pull.Artifact != "":
			all["registry"], all["pull_tag"] = pull.Artifact, pull.Tag
		case from >= 0 && g.Steps[from].Push != nil:
			all["registry"], all["pull_tag"] = g.Steps[from].Push.Artifact, tagOf(g.Steps[from].StepWork)
		}
	}
	if step.Push != nil {
		all["registry"] = step.Push.Artifact
	}
	all["registry"] = strings.TrimSuffix(all["registry"], "/")
	return all
}

// fetchesArtifacts reports whether anything that a workflow runs needs an artifact.
func fetchesArtifacts(w *v1alpha1.HTCWorkflow) bool {
	fetches := func(work v1alpha1.StepWork) bool {
		return len(inputs.References(v1alpha1.HTCJobSpec{Inputs: work.Job.Inputs})) > 0 ||
			slices.ContainsFunc(work.Pull, func(p v1alpha1.Pull) bool { return p.Artifact != "" })
	}
	return w.Spec.Finally != nil && fetches(*w.Spec.Finally) ||
		slices.ContainsFunc(w.Spec.Steps, func(s v1alpha1.Step) bool { return fetches(s.StepWork) })
}
