package workflow

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// tables are ConfigMaps, each with a table.
type tables map[string]string

func (t tables) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"table": t[name]}}, nil
}

func tableOf(configMap string) v1alpha1.ItemsFrom {
	return v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: configMap, Key: "table"}}
}

// labels are what the nodes of the first DAG are called, with their states.
func (w *world) labels() (all []string) {
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) error {
		nodes, err := tx.Nodes("uid-flow", 1, ledger.NodeFilter{})
		for _, n := range nodes {
			all = append(all, n.StepName+"/"+n.Label)
		}
		return err
	}))
	return all
}

func TestATableIsReadOnceInAnAttempt(t *testing.T) {
	w := newWorld(t)
	maps := tables{"files": "FILE\na\nb\nc\n"}
	w.ConfigMaps = maps
	flow := newWorkflow("flow")
	from := tableOf("files")
	flow.Spec.Sequences = nil
	flow.Spec.Steps[0].ForEach = &v1alpha1.ForEach{ItemsFrom: &from}
	flow.Spec.Steps[1].ForEach = &v1alpha1.ForEach{ItemsFrom: &from}
	flow = w.apply(flow)
	require.Equal(t, v1alpha1.PhaseIdle, flow.Status.Phase, "%v", flow.Status.Conditions)
	require.EqualValues(t, 6, flow.Status.Nodes.Total, "those of the level that is not sent yet, too")
	require.NotEmpty(t, flow.Status.ItemsDigest)
	maps["files"] = "FILE\na\n"
	w.restart()
	w.ends(1)
	require.Equal(t, []string{"b 3"}, w.steps("b"))
	w.ends(2)
	flow = w.flow("flow")
	require.Equal(t, v1alpha1.PhaseSucceeded, flow.Status.Phase)
	require.EqualValues(t, 6, flow.Status.Nodes.Done)
}

func (w *world) steps(name string) (all []string) {
	for _, s := range w.flow("flow").Status.Steps {
		if string(s.Name) == name {
			all = append(all, name+" "+string('0'+rune(s.Total)))
		}
	}
	return all
}

func TestTheNodesOfAListedGraphHaveTheirNames(t *testing.T) {
	w := newWorld(t)
	w.ConfigMaps = tables{"nodes": "node,step,FILE\nx,a,1\ny,b,2\nz,a,3\n", "edges": "parents,children\nx,y\ny,z\n"}
	flow := newWorkflow("flow")
	flow.Spec.Sequences, flow.Spec.Steps[1].Pairing = nil, ""
	flow.Spec.Graph = &v1alpha1.Graph{
		NodesFrom: []v1alpha1.ItemsFrom{tableOf("nodes")},
		EdgesFrom: []v1alpha1.ItemsFrom{tableOf("edges")},
	}
	flow = w.apply(flow)
	require.Equal(t, v1alpha1.PhaseIdle, flow.Status.Phase, "%v", flow.Status.Conditions)
	require.Equal(t, []string{"a/x", "a/z", "b/y"}, w.labels())
	require.EqualValues(t, 3, flow.Status.Nodes.Total)
	w.ends(1)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("flow").Status.Phase)
}

func TestAGraphThatIsNoneIsRefused(t *testing.T) {
	w := newWorld(t)
	w.ConfigMaps = tables{"edges": "parents,children\nx,y\ny,x\n"}
	flow := newWorkflow("flow")
	flow.Spec.Sequences, flow.Spec.Steps[1].Pairing = nil, ""
	flow.Spec.Graph = &v1alpha1.Graph{
		Nodes: []v1alpha1.GraphNode{
			{Name: "x", Step: "a"},
			{Name: "y", Step: "b"},
		}, EdgesFrom: []v1alpha1.ItemsFrom{tableOf("edges")},
	}
	w.apply(flow)
	reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, "Refused", reason)
	require.Contains(t, message, "spec.graph: no node of a cycle could ever run: x, which needs y, which needs x")
}

func TestAnotherPriorityRunsNoNodeAgain(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("w")
	a := v1alpha1.Step{StepWork: flow.Spec.Steps[0].StepWork}
	flow.Spec.Sequences, flow.Spec.Steps, flow.Spec.Resume = nil, []v1alpha1.Step{a}, v1alpha1.ResumeFromFailure
	flow.Spec.Graph = &v1alpha1.Graph{Nodes: []v1alpha1.GraphNode{
		{Name: "x", Step: "a", Variables: v1alpha1.Item{"V": "1"}}, {Name: "y", Step: "a"},
	}}
	w.apply(flow)
	w.ends(1)
	for _, node := range []string{"x", "y"} {
		require.NoError(t, os.MkdirAll(filepath.Join(w.Output.Root, "default", "w", "1", "a", node), 0o700))
	}
	edited := w.flow("w").DeepCopy()
	edited.Generation++
	edited.Spec.Graph.Nodes[0].Priority = new(int32(5))
	edited.Spec.Graph.Nodes[1].Variables = v1alpha1.Item{"V": "2"}
	w.apply(edited)
	require.Equal(t, v1alpha1.NodeCounts{Total: 2, Done: 1}, w.flow("w").Status.Nodes)
	require.NoError(t, w.book.Read(t.Context(), func(tx *ledger.Tx) error {
		nodes, err := tx.Nodes("uid-w", 2, ledger.NodeFilter{State: ledger.NodeDone})
		require.Len(t, nodes, 1)
		require.Equal(t, "x", nodes[0].Label, "a priority is no variable")
		return err
	}))
}
