package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// planned is the first level of a workflow with these steps, in two sequences.
func planned(t *testing.T, work ...v1alpha1.StepWork) (plannedDAG, error) {
	t.Helper()
	w := newWorkflow("one")
	w.Spec.Steps = nil
	for _, s := range work {
		s.Job.Script = v1alpha1.Program{Image: "centos", Command: "sh", Source: "true\n"}
		w.Spec.Steps = append(
			w.Spec.Steps,
			v1alpha1.Step{StepWork: s, ForEach: map[bool]*v1alpha1.ForEach{true: {Count: 2}}[s.Name == "many"]},
		)
	}
	g, err := graph.New(w.Spec)
	require.NoError(t, err)
	p := plannedDAG{graph: g, steps: g.Levels[0], nodes: g.Nodes(0, graph.Outcome{Sequences: []int{0, 1}})}
	return p, p.list(w)
}

func fromMap(name, source string) v1alpha1.Input {
	return v1alpha1.Input{Name: name, ConfigMapKeyRef: &v1alpha1.KeyRef{Name: source, Key: "k"}}
}

func TestAnInputIsThereOnceForAllThatNameIt(t *testing.T) {
	p, err := planned(
		t,
		v1alpha1.StepWork{
			Name: "a",
			Job:  v1alpha1.StepJob{Inputs: []v1alpha1.Input{fromMap("x", "m"), fromMap("y", "m")}},
		},
		v1alpha1.StepWork{
			Name: "b",
			Job: v1alpha1.StepJob{
				Inputs: []v1alpha1.Input{fromMap("x", "m"), fromMap("y", "n"), {Name: "u", URL: "https://a/b"}},
			},
			Pull: []v1alpha1.Pull{{From: "a", Path: "f"}, {Artifact: "r.example.org/m", Tag: "v1", Path: "g"}},
		},
		v1alpha1.StepWork{Name: "c"},
	)
	require.NoError(t, err)
	given := map[string][]string{}
	for _, n := range p.nodes {
		given[p.graph.Name(n)] = p.given(n)
	}
	require.Equal(t, map[string][]string{
		"a/job_0": {"in0", "in1"}, "a/job_1": {"in0", "in1"},
		"b/job_0": {"in0", "in2", "s1-a1-0"}, "b/job_1": {"in0", "in2", "s1-a1-1"}, "c/job_0": nil, "c/job_1": nil,
	}, given)
	require.Len(t, p.brought, 5)
	require.Equal(t, "r.example.org/m/job_1:v1", p.brought[4].job.Spec.Inputs[0].Artifact)
	require.Equal(t, "g", p.brought[4].pull)
}

func TestProcSameIsRefusedInAStep(t *testing.T) {
	in := v1alpha1.Input{Name: "x", JobRef: &v1alpha1.JobRef{Name: "j", Path: "p", Proc: sameProc()}}
	_, err := planned(t, v1alpha1.StepWork{Name: "a", Job: v1alpha1.StepJob{Inputs: []v1alpha1.Input{in}}})
	require.ErrorContains(
		t,
		err,
		"step a: spec.inputs: x: jobRef.proc Same, {{item.NAME}} and {{proc}} cannot be used in a workflow",
	)
	require.Equal(t, condor.Refused, condor.KindOf(err))
}

func TestWhereStepsPushIsWrittenWithoutTheSpec(t *testing.T) {
	push := func(tag string) *v1alpha1.Push { return &v1alpha1.Push{Artifact: "r.example.org/m", Tag: tag} }
	p, err := planned(
		t,
		v1alpha1.StepWork{Name: "a", Push: push("")},
		v1alpha1.StepWork{Name: "many", Push: push("v1"), Pull: []v1alpha1.Pull{{From: "a", Path: "f"}}},
		v1alpha1.StepWork{Name: "c"},
	)
	require.NoError(t, err)
	all := p.destinations()
	require.Len(t, all, 2)
	at := ledger.Place{Sequence: 17, Item: 3}
	require.Equal(t, "a/job_17 r.example.org/m/job_17:a", fill(all[0].Path+" "+all[0].Artifact, at))
	require.Equal(t, "many/job_17/3 r.example.org/m/job_17:v1-3", fill(all[1].Path+" "+all[1].Artifact, at))
	require.Equal(
		t,
		map[string]string{"registry": "r.example.org/m", "pull_tag": "", "push_tag": "a"},
		registryVariables(p.graph, 0),
	)
	require.Equal(
		t,
		map[string]string{"registry": "r.example.org/m", "pull_tag": "a", "push_tag": "v1"},
		registryVariables(p.graph, 1),
	)
	require.Equal(t, map[string]string{"registry": "", "pull_tag": "", "push_tag": ""}, registryVariables(p.graph, 2))
	require.Equal(t, "jobid=job_1\npush_tag=v1-1\n", p.variables(graph.Node{Step: 1, Sequence: 1, Index: 1}))
}

func sameProc() *intstr.IntOrString { return new(intstr.FromString(v1alpha1.ProcSame)) }

func TestAJobRefToAStepIsToldToBePulled(t *testing.T) {
	flow := newWorkflow("one")
	flow.Spec.Steps[1].Job.Inputs = []v1alpha1.Input{{Name: "x", JobRef: &v1alpha1.JobRef{Name: "a", Path: "out"}}}
	g, err := graph.New(flow.Spec)
	require.NoError(t, err)
	missing := &inputs.Waiting{
		Reason:  inputs.ReasonHTCJobNotFound,
		Message: "x: there is no HTCJob a in this namespace",
	}
	told := noHTCJob(missing, g.Steps, flow.Spec.Steps[1].Job.Inputs[0].JobRef)
	require.EqualError(
		t,
		told,
		missing.Message+"; a is a step of this HTCWorkflow, whose jobs are no HTCJobs: for a file of it write pull: [{from: a, path: out}], for a table itemsFrom: {step: a, path: out}",
	)
	require.Equal(t, missing, noHTCJob(missing, g.Steps, &v1alpha1.JobRef{Name: "other", Path: "out"}))
	require.NoError(t, noHTCJob(nil, g.Steps, nil))
	require.Equal(t, v1alpha1.WorkflowKind, stepJob(flow, g, 1).Kind)
}
