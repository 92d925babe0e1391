package plugin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// scanAt is a workflow of two steps with that many nodes done, running and failed.
func scanAt(
	phase v1alpha1.Phase,
	simulate, fit v1alpha1.NodeCounts,
	failures ...v1alpha1.NodeFailure,
) *v1alpha1.HTCWorkflow {
	w := workflowNamed("scan", phase)
	simulate.Total, fit.Total = 3, 3
	w.Status.Steps = []v1alpha1.StepStatus{{Name: "simulate", NodeCounts: simulate}, {Name: "fit", NodeCounts: fit}}
	w.Status.Nodes = v1alpha1.NodeCounts{
		Total:   6,
		Done:    simulate.Done + fit.Done,
		Running: simulate.Running + fit.Running,
		Failed:  simulate.Failed + fit.Failed,
		Futile:  simulate.Futile + fit.Futile,
	}
	w.Status.Failures, w.Status.Attempt = failures, 1
	return w
}

func nodeFailed(node string, code int32, stderr string) v1alpha1.NodeFailure {
	return v1alpha1.NodeFailure{
		Node:    node,
		Failure: v1alpha1.Failure{JobID: "93.0", ExitCode: &code, Message: "exit code", Stderr: stderr},
	}
}

func TestAWorkflowIsWaitedForUntilItEndsEitherWay(t *testing.T) {
	begun := scanAt(v1alpha1.PhaseRunning, v1alpha1.NodeCounts{Running: 3}, v1alpha1.NodeCounts{})
	on := scanAt(v1alpha1.PhaseRunning, v1alpha1.NodeCounts{Done: 3}, v1alpha1.NodeCounts{Done: 1, Running: 1})
	const simulated = "wf/scan: step simulate: 3 of 3 nodes done\n"
	failed := scanAt(
		v1alpha1.PhaseFailed,
		v1alpha1.NodeCounts{Done: 3},
		v1alpha1.NodeCounts{Done: 2, Failed: 1},
		nodeFailed("fit/job_2", 7, "no such file\n"),
	)
	failed.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Message: "1 node failed"},
	}
	for name, c := range map[string]struct {
		end  *v1alpha1.HTCWorkflow
		code int
		said string
	}{
		"it succeeds": {scanAt(v1alpha1.PhaseSucceeded, v1alpha1.NodeCounts{Done: 3}, v1alpha1.NodeCounts{Done: 3}), 0, simulated + "wf/scan: step fit: 3 of 3 nodes done\n"},
		"a node fails": {failed, 7, simulated + "wf/scan: fit/job_2: exit code: no such file\n" +
			"wf/scan: step fit: 2 of 3 nodes done, 1 failed, 0 futile\nwf/scan: Failed: 1 node failed\n"},
		"nodes fail differently": {scanAt(v1alpha1.PhaseFailed, v1alpha1.NodeCounts{Done: 3}, v1alpha1.NodeCounts{Done: 1, Failed: 2},
			nodeFailed("fit/job_1", 7, ""), nodeFailed("fit/job_2", 8, "")), 1,
			simulated + "wf/scan: step fit: 1 of 3 nodes done, 2 failed, 0 futile\nwf/scan: Failed\n  fit/job_1: exit code\n  fit/job_2: exit code\n"},
		"it is removed": {scanAt(v1alpha1.PhaseRemoved, v1alpha1.NodeCounts{Done: 3}, v1alpha1.NodeCounts{}), 1, simulated + "wf/scan: Removed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			where := &cluster{
				namespace: "ns",
				workflows: &shelf{all: []runtime.Object{begun}, changes: []runtime.Object{on, c.end}},
			}
			var said strings.Builder
			err := where.wait(t.Context(), []*object{objectOf(begun)}, &display{w: &said})
			if c.code == 0 {
				require.NoError(t, err)
			} else {
				require.Equal(t, Exit{c.code}, err)
			}
			require.Equal(t, c.said, said.String())
		})
	}
}

func TestTheLineOfATerminalNamesTheStepsAtWork(t *testing.T) {
	at := func(w *v1alpha1.HTCWorkflow) string { return counts([]*object{objectOf(w)}) }
	require.Equal(t, "Running: 3 waiting, 0 idle, 2 running, 1 done, 0 failed, 0 held; simulate 1/3",
		at(scanAt(v1alpha1.PhaseRunning, v1alpha1.NodeCounts{Done: 1, Running: 2}, v1alpha1.NodeCounts{})))
	require.Equal(t, "Succeeded: 0 idle, 0 running, 6 done, 0 failed, 0 held",
		at(scanAt(v1alpha1.PhaseSucceeded, v1alpha1.NodeCounts{Done: 3}, v1alpha1.NodeCounts{Done: 3})))
	many := scanAt(v1alpha1.PhaseRunning, v1alpha1.NodeCounts{Running: 1}, v1alpha1.NodeCounts{Running: 1})
	many.Status.Steps = append(many.Status.Steps, many.Status.Steps...)
	require.True(t, strings.HasSuffix(at(many), "; simulate 0/3, fit 0/3, simulate 0/3, ..."), at(many))
	require.Equal(t, "0 idle, 0 running, 0 done, 0 failed, 0 held", at(&v1alpha1.HTCWorkflow{}), "htcd has not seen it")
}

func TestAWorkflowIsALineOfAList(t *testing.T) {
	w := scanAt(
		v1alpha1.PhaseFailed,
		v1alpha1.NodeCounts{Done: 3},
		v1alpha1.NodeCounts{Done: 1, Failed: 1, Futile: 1},
		nodeFailed("fit/job_2", 7, ""),
	)
	w.CreationTimestamp, w.Status.Reason, w.Status.Message = metav1.Now(), "NodesFailed", "1 node has failed"
	w.Status.ExitCode = new(int32(7))
	for format, want := range map[string]string{
		"word": "failed\n", "name": "htcworkflow.htc.cern.ch/scan\n",
		"table": "NAME      STATE    PHASE    ACTIVE   SUCCEEDED   FAILED   AGE\nwf/scan   failed   Failed   0        4           1        0s\n",
	} {
		var out strings.Builder
		require.NoError(t, show(&out, format, []*object{objectOf(w)}))
		require.Equal(t, want, out.String(), format)
	}
	var out strings.Builder
	require.NoError(t, show(&out, "json", []*object{objectOf(w)}))
	require.Contains(t, out.String(), `{"kind":"HTCWorkflow","namespace":"","name":"scan"`)
	require.Contains(
		t,
		out.String(),
		`"state":"failed","phase":"Failed","reason":"NodesFailed","message":"1 node has failed","exitCode":7`,
	)
	for phase, want := range map[v1alpha1.Phase]state{
		"": isPending, v1alpha1.PhaseHeld: isPending, v1alpha1.PhaseRunning: isRunning, v1alpha1.PhaseSuspended: isSuspended,
		v1alpha1.PhaseSucceeded: isSucceeded, v1alpha1.PhaseFailed: isFailed, v1alpha1.PhaseRemoved: isFailed,
	} {
		require.Equal(t, want, stateOf(objectOf(workflowNamed("scan", phase))), phase)
	}
	again := workflowNamed("scan", v1alpha1.PhaseSucceeded)
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "2"}
	require.Equal(t, isPending, stateOf(objectOf(again)), "it is to run again")
}
