package workflow

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// completing is a workflow that ends once two of its sequences have succeeded, of at most five. Its first and its last
// step run once for all of them.
func completing(change ...func(*v1alpha1.HTCWorkflow)) *v1alpha1.HTCWorkflow {
	w := newWorkflow("w")
	w.Spec.Sequences = &v1alpha1.Sequences{Count: new(int32(5)), Completions: new(int32(2))}
	script := w.Spec.Steps[0].Job
	w.Spec.Steps = []v1alpha1.Step{
		{StepWork: v1alpha1.StepWork{Name: "make", Job: script}, Pairing: v1alpha1.PairAll},
		{StepWork: v1alpha1.StepWork{Name: "fit", Job: script, Pull: []v1alpha1.Pull{{From: "make", Path: "made"}}}},
		{StepWork: v1alpha1.StepWork{Name: "plot", Job: script}, Pairing: v1alpha1.PairAll},
	}
	for _, f := range change {
		f(w)
	}
	return w
}

// fails lets a DAG end in which fit of these sequences has failed.
func (w *world) fails(dag int, sequences ...int) {
	w.t.Helper()
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		nodes, err := tx.Nodes("uid-w", dag, ledger.NodeFilter{})
		for _, n := range nodes {
			if err == nil && n.StepName == "fit" && slices.Contains(sequences, n.Sequence) {
				n.Status, n.ExitCode, n.Source = ledger.StatusFailed, new(3), "history"
				err = tx.UpdateNode(n)
			}
		}
		return err
	}))
	w.ends(dag)
}

func TestFurtherSequencesTakeThePlaceOfThoseThatHaveFailed(t *testing.T) {
	w := newWorld(t)
	s := w.apply(completing()).Status
	require.Equal(t, v1alpha1.SequenceCounts{Total: 2, Active: 2}, s.Sequences, "no more begin than must succeed")
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: &condor.Error{Kind: condor.Unreachable}, After: true})
	w.fails(1, 0, 1)
	w.restart()
	for range 5 {
		w.later(reconciler.LastRetry)
	}
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), "what was sent is found, and not sent again")
	require.Equal(t, map[string]string{"make/": "carried", "fit2": "waiting", "fit3": "waiting"}, w.states(2))
	s = w.flow("w").Status
	require.Equal(t, v1alpha1.SequenceCounts{Total: 4, Active: 2, Failed: 2}, s.Sequences)
	require.Equal(t, v1alpha1.NodeCounts{Total: 6, Done: 1, Failed: 2}, s.Nodes)

	w.fails(2, 3)
	require.Equal(t, map[string]string{"make/": "carried", "fit4": "waiting"}, w.states(3), "one has succeeded")
	w.ends(3)
	require.Equal(t, map[string]string{"plot/": "waiting"}, w.states(4))
	w.ends(4)
	s = w.flow("w").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, s.Phase)
	require.Equal(t, v1alpha1.SequenceCounts{Total: 5, Succeeded: 2, Failed: 3}, s.Sequences)
}

func TestNoFurtherSequencesBegin(t *testing.T) {
	done, failed := ledger.Counts{Succeeded: 2}, ledger.Counts{Succeeded: 1, Failed: 1}
	for name, c := range map[string]struct {
		change func(*v1alpha1.HTCWorkflow)
		dag    DAG
		want   Decision
	}{
		"but for those that have failed":   {nil, of(0, failed), Decision{Action: Submit}},
		"when enough have succeeded":       {nil, of(0, done), Decision{Action: Submit, Level: 1}},
		"when there are no more":           {func(w *v1alpha1.HTCWorkflow) { w.Spec.Sequences.Count = new(int32(2)) }, of(0, failed), Decision{Action: Submit, Level: 1}},
		"when a rule has finished them":    {nil, of(0, failed, func(d *DAG) { d.Run.Stop = crosscheck.StopFinished }), Decision{Action: Submit, Level: 1}},
		"when one was removed by somebody": {nil, of(0, failed, func(d *DAG) { d.Job = &ledger.Proc{Status: ledger.StatusFailed, Reason: crosscheck.ReasonRemoved} }), Decision{Action: Submit, Level: 2}},
		"while it is suspended":            {func(w *v1alpha1.HTCWorkflow) { w.Spec.Suspend = true }, of(0, failed), Decision{Action: Rest}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t, func(w *v1alpha1.HTCWorkflow) {
				w.Spec.Sequences = &v1alpha1.Sequences{Count: new(int32(4)), Completions: new(int32(2))}
				if c.change != nil {
					c.change(w)
				}
			})
			require.Equal(t, c.want, Plan(s.with(c.dag)))
		})
	}
}

func TestAWorkflowWithoutEnoughCompletionsSaysSo(t *testing.T) {
	w := newWorld(t)
	w.apply(completing(func(f *v1alpha1.HTCWorkflow) { f.Spec.Sequences.Count = new(int32(3)) }))
	w.fails(1, 0)
	w.fails(2, 2)
	w.ends(3)
	_, message := w.says("w", v1alpha1.ConditionFailed)
	require.Contains(t, message, "1 of 2 sequences succeeded, and 3 of at most 3 were begun; ")
}

func TestAnEditAfterFurtherSequencesLeavesAStatusThatTheAPITakes(t *testing.T) {
	w := newWorld(t)
	w.apply(completing())
	w.fails(1, 0)
	w.ends(2)
	w.ends(3)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("w").Status.Phase)
	f := w.flow("w").DeepCopy()
	f.Generation++
	f.Spec.Suspend = true
	f.Spec.Steps = append([]v1alpha1.Step{{
		StepWork: v1alpha1.StepWork{Name: "first", Job: f.Spec.Steps[0].Job}, Pairing: v1alpha1.PairAll,
	}}, f.Spec.Steps...)
	s := w.apply(f).Status
	require.Equal(t, v1alpha1.PhaseSuspended, s.Phase)
	require.Equal(t, []v1alpha1.StepStatus{
		{Name: "make", NodeCounts: v1alpha1.NodeCounts{Total: 1, Done: 1}},
		{Name: "fit", NodeCounts: v1alpha1.NodeCounts{Total: 3, Done: 2, Failed: 1}},
		{Name: "plot", NodeCounts: v1alpha1.NodeCounts{Total: 1, Done: 1}},
	}, s.Steps, "each step once, though two DAGs have it")
	require.Equal(t, "fit", s.Failures[0].Node, "and not the step that is at its place now")
}
