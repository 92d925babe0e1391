package ports

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestAServiceLeadsToNodes(t *testing.T) {
	w := start(t)
	w.workflows.Add(flow("1", "",
		v1alpha1.WorkflowPort{Port: 8888, Step: "serve"},
		v1alpha1.WorkflowPort{Port: 9000, Step: "scan", Sequence: 1, Index: 2}))
	w.eventually(func() bool { return w.service() != nil })
	require.Equal(t, v1alpha1.WorkflowKind, w.service().OwnerReferences[0].Kind)
	for i, want := range []string{
		"HTCWorkflow web, step serve, sequence 0, index 0, port 8888: hello",
		"HTCWorkflow web, step scan, sequence 1, index 2, port 9000: hello",
	} {
		text, err := w.ask(i)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	w.eventually(func() bool { return len(w.said()) == 2 })
	require.Contains(t, w.said(), "HTCWorkflow web: PortNotReached: "+
		"port 9000 of step scan, sequence 1, index 2 is not reached: unexpected EOF")

	w.workflows.Modify(flow("1", v1alpha1.PhaseRunning, v1alpha1.WorkflowPort{Port: 80, Step: "serve", Sequence: 1}))
	w.eventually(func() bool { return len(w.service().Spec.Ports) == 1 })
	text, err := w.ask(0)
	require.NoError(t, err)
	require.Equal(t, "HTCWorkflow web, step serve, sequence 1, index 0, port 80: hello", text)

	w.workflows.Modify(flow("1", v1alpha1.PhaseSucceeded, v1alpha1.WorkflowPort{Port: 80, Step: "serve"}))
	w.eventually(func() bool { return w.service() == nil })
}

func TestAServiceLeadsToNodesOfAGraph(t *testing.T) {
	listed := flow("1", "", v1alpha1.WorkflowPort{Port: 9001, Node: "N17"})
	listed.Spec.Sequences, listed.Spec.Steps = nil, listed.Spec.Steps[:1]
	listed.Spec.Graph = &v1alpha1.Graph{Nodes: []v1alpha1.GraphNode{{Name: "N17", Step: "serve"}}}
	w := start(t)
	w.workflows.Add(listed)
	w.eventually(func() bool { return w.service() != nil })
	text, err := w.ask(0)
	require.NoError(t, err)
	require.Equal(t, "HTCWorkflow web, node N17, port 9001: hello", text)
}

func TestAPortOfNoNodeIsToldAndTheOthersLeadToTheirs(t *testing.T) {
	const told = "HTCWorkflow web: PortInvalid: "
	w := start(t)
	one, none := v1alpha1.WorkflowPort{Port: 80, Step: "serve"}, v1alpha1.WorkflowPort{Port: 81, Step: "server"}
	w.workflows.Add(flow("1", "", none, one))
	w.eventually(func() bool { return w.service() != nil })
	require.Len(t, w.service().Spec.Ports, 1)
	text, err := w.ask(0)
	require.NoError(t, err)
	require.Equal(t, "HTCWorkflow web, step serve, sequence 0, index 0, port 80: hello", text)
	w.eventually(func() bool { return len(w.said()) == 2 })
	require.Contains(t, w.said(), told+`spec.ports[0]: there is no step "server": the steps are serve, scan`)

	w.workflows.Modify(flow("1", v1alpha1.PhaseRunning, none))
	w.eventually(func() bool { return w.service() == nil })
	require.Len(t, w.said(), 2, "it is told once")

	none.Node = "N17"
	w.workflows.Modify(flow("1", v1alpha1.PhaseRunning, none, one))
	w.eventually(func() bool { return w.service() != nil })
	require.Equal(t, told+"spec.ports[0]: node names one node: leave out step, sequence and index", w.said()[2])

	refused := flow("1", v1alpha1.PhasePending, none, one)
	refused.Spec.Steps[1].Name = "serve" // as its own Events say
	w.workflows.Modify(refused)
	w.eventually(func() bool { return len(w.service().Spec.Ports) == 2 })
	require.Len(t, w.said(), 3)
}

func TestTheFirstOfTwoKindsHasTheServiceUntilItHasEnded(t *testing.T) {
	job, node := v1alpha1.JobPort{Port: 80}, v1alpha1.WorkflowPort{Port: 80, Step: "serve"}
	w := start(t)
	of := func(kind string) func() bool {
		return func() bool { s := w.service(); return s != nil && s.OwnerReferences[0].Kind == kind }
	}
	taken := func(kind string) func() bool {
		return func() bool {
			said := w.said()
			return len(said) > 0 && said[len(said)-1] == kind+
				" web: ServiceNameTaken: there is a Service web that is not this "+kind+"'s; it is left as it is"
		}
	}
	w.jobs.Add(web("1", "", job))
	w.eventually(of(v1alpha1.Kind))
	w.workflows.Add(flow("2", "", node))
	w.eventually(taken(v1alpha1.WorkflowKind))
	text, err := w.ask(0)
	require.NoError(t, err)
	require.Equal(t, "HTCJob web, job 0, port 80: hello", text)

	w.jobs.Modify(web("1", v1alpha1.PhaseSucceeded, job))
	w.eventually(of(v1alpha1.WorkflowKind))
	text, err = w.ask(0)
	require.NoError(t, err)
	require.Equal(t, "HTCWorkflow web, step serve, sequence 0, index 0, port 80: hello", text)

	w.jobs.Modify(web("1", v1alpha1.PhaseRunning, job)) // it runs again
	w.eventually(taken(v1alpha1.Kind))
	w.workflows.Delete(flow("2", "", node))
	w.eventually(of(v1alpha1.Kind))
}

func TestAfterARestartTheServiceIsStillThatOfTheOneThatHadIt(t *testing.T) {
	job, node := v1alpha1.JobPort{Port: 80}, v1alpha1.WorkflowPort{Port: 80, Step: "serve"}
	for kind, old := range map[string]any{v1alpha1.Kind: web("1", "", job), v1alpha1.WorkflowKind: flow("2", "", node)} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, left(old))
			w.jobs.Add(web("1", "", job))
			w.workflows.Add(flow("2", "", node))
			w.run()
			w.eventually(func() bool { return w.service().Spec.Ports[0].TargetPort.IntVal != 40000 })
			w.eventually(func() bool { return len(w.said()) > 0 })
			require.Equal(t, kind, w.service().OwnerReferences[0].Kind)
		})
	}
}
