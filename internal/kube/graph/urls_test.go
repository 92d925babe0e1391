package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// writes has the jobs of a step write a file to a URL.
func writes(url string) func(*v1alpha1.Step) {
	return func(s *v1alpha1.Step) {
		s.Job.Outputs = append(s.Job.Outputs, v1alpha1.StepOutput{Path: "x", URL: url})
	}
}

func TestJobsThatWouldWriteToTheSamePlaceAreRefused(t *testing.T) {
	sequences := func(spec v1alpha1.HTCWorkflowSpec) v1alpha1.HTCWorkflowSpec {
		spec.Sequences = &v1alpha1.Sequences{Count: new(int32(2))}
		return spec
	}
	listed := func(spec v1alpha1.HTCWorkflowSpec) v1alpha1.HTCWorkflowSpec {
		spec.Graph = &v1alpha1.Graph{Nodes: []v1alpha1.GraphNode{{Name: "n", Step: "a"}}}
		return spec
	}
	for name, c := range map[string]struct {
		spec v1alpha1.HTCWorkflowSpec
		want string
	}{
		"one job":           {steps(step("a", writes("https://s/x"))), ""},
		"one of each":       {sequences(steps(step("a", writes("https://s/{jobid}")))), ""},
		"one for all":       {sequences(steps(step("a", all, writes("https://s/x")))), ""},
		"one of each item":  {sequences(steps(step("a", each(2), writes("https://s/{jobid}/{proc}")))), ""},
		"all sequences":     {sequences(steps(step("a", writes("https://s/x")))), "expected {jobid} in it: the jobs of all sequences"},
		"all nodes":         {listed(steps(step("a", writes("https://s/x")))), "expected {jobid} in it: the jobs of all nodes"},
		"all items":         {steps(step("a", each(2), writes("https://s/{jobid}"))), "expected {proc} in it: the jobs of all items"},
		"two outputs":       {steps(step("a", writes("https://s/x"), writes("https://s/x"))), "another output has the same"},
		"outputs of two":    {steps(step("a", writes("https://s/x")), step("b", writes("https://s/x"))), `the step "b": outputs: x: url "https://s/x": another`},
		"two without a URL": {steps(step("a", writes("")), step("b", writes(""))), ""},
	} {
		_, err := New(c.spec)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}

func TestTheURLOfANodeHasItsNameAndNumber(t *testing.T) {
	g := made(t, steps(step("a", each(2))))
	require.Equal(t, "https://s/job_3/1/x", g.URLOf(Node{Sequence: 3, Index: 1}, "https://s/{jobid}/{proc}/x"))
}
