package workflow

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// repeated is a workflow of make, fit and keep in 3 sequences, and a step for all of them, in which fit is repeated
// once.
func repeated(change ...func(*v1alpha1.HTCWorkflow)) *v1alpha1.HTCWorkflow {
	w := newWorkflow("w")
	script := w.Spec.Steps[0].Job
	w.Spec.Sequences.Count = new(int32(3))
	w.Spec.Rules = []v1alpha1.Rule{{Step: "fit", Metric: "chi2", When: "value > 2", Action: v1alpha1.ActionRepeat}}
	w.Spec.Steps = []v1alpha1.Step{
		{StepWork: v1alpha1.StepWork{Name: "make", Job: script}},
		{StepWork: v1alpha1.StepWork{Name: "fit", Job: script, Pull: []v1alpha1.Pull{{From: "make", Path: "made"}}}},
		{StepWork: v1alpha1.StepWork{Name: "keep", Job: script}},
		{StepWork: v1alpha1.StepWork{Name: "plot", Job: script}, Pairing: v1alpha1.PairAll},
	}
	for _, f := range change {
		f(w)
	}
	return w
}

// measures stores chi2 of the sequences as the steps fit of a DAG have measured it, and what each make has left.
func (w *world) measures(dag int, values map[int]float64) {
	w.t.Helper()
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		nodes, err := tx.Nodes("uid-w", dag, ledger.NodeFilter{})
		for _, n := range nodes {
			value, is := values[n.Sequence]
			if err == nil && n.StepName == "fit" && is {
				_, err = tx.SetResults(n, []ledger.Result{{Name: "chi2", Value: value}}, true)
			}
		}
		return err
	}))
	for _, name := range []string{"job_0", "job_1", "job_2"} {
		dir := filepath.Join(w.Output.Root, "default", "w", "1", "make", name)
		require.NoError(w.t, os.MkdirAll(dir, 0o700))
		require.NoError(w.t, os.WriteFile(filepath.Join(dir, "made"), nil, 0o600))
	}
}

// states lists the nodes of a DAG that is recorded, with their sources.
func (w *world) states(dag int) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) error {
		nodes, err := tx.Nodes("uid-w", dag, ledger.NodeFilter{})
		for _, n := range nodes {
			state := string(n.State())
			if n.Source == ledger.SourceCarried {
				state = ledger.SourceCarried
			}
			all[n.StepName+string(rune('0'+n.Sequence))] = state
		}
		return err
	}))
	return all
}

func TestASequenceRepeatsAStepAndAllAfterIt(t *testing.T) {
	w := newWorld(t)
	w.apply(repeated())
	w.measures(1, map[int]float64{0: 1, 1: 3, 2: 2})
	w.ends(1)
	require.Equal(t, map[string]string{"make1": "carried", "fit1": "waiting", "keep1": "waiting"}, w.states(2))
	require.Len(t, w.states(1), 6)
	s := w.flow("w").Status
	require.Equal(t, []string{"1.0", "2.0"}, s.JobID)
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 7}, s.Nodes)
	require.Equal(t, v1alpha1.SequenceCounts{Total: 3, Active: 1, Succeeded: 2}, s.Sequences)

	w.restart()
	w.settle()
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), "once for each occasion")
	w.measures(2, map[int]float64{1: 5})
	w.ends(2)
	s = w.flow("w").Status
	require.Equal(t, []string{"1.0", "2.0", "3.0"}, s.JobID, "once in each sequence; what is for all has waited")
	require.Equal(t, map[string]string{"plot/": "waiting"}, w.states(3))
	require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 9}, s.Nodes)
	const still = `chi2 of step fit still meets "value > 2" in 1 sequence, which has been repeated as often as spec.rules[0].times says (1)`
	require.Contains(t, w.warned, "RepeatExhausted: "+still)
	w.ends(3)
	s = w.flow("w").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, s.Phase)
	reason, message := w.says("w", v1alpha1.ConditionRepeatExhausted)
	require.Equal(t, []string{"RepeatExhausted", still}, []string{reason, message})
	require.Equal(t, v1alpha1.SequenceCounts{Total: 3, Succeeded: 3}, s.Sequences)
	w.restart()
	w.settle()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("w").Status.Phase)
	require.Equal(t, 3, w.schedd.Calls(scheddtest.Submit))
}

func TestWhatInterruptsARepetitionDoesNotDoubleIt(t *testing.T) {
	w := newWorld(t)
	w.apply(repeated())
	w.measures(1, map[int]float64{0: 3, 1: 3, 2: 3})
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: &condor.Error{Kind: condor.Unreachable}, After: true})
	w.ends(1)
	w.restart()
	for range 5 {
		w.later(reconciler.LastRetry)
	}
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("w").Status.JobID)
	require.Len(t, w.states(2), 9)
	require.Empty(t, w.states(1))
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), "it is adopted")
	w.ends(2)
	w.ends(3)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("w").Status.Phase)
}

func TestWhatARepetitionDependsOn(t *testing.T) {
	bad := map[int]float64{0: 3, 1: 3, 2: 1}
	for name, c := range map[string]struct {
		change func(*v1alpha1.HTCWorkflow)
		later  time.Duration
		dags   int // 2: the second repeats, or is that of plot
		again  bool
	}{
		"by its rule":         {func(*v1alpha1.HTCWorkflow) {}, 0, 2, true},
		"not before its time": {func(f *v1alpha1.HTCWorkflow) { f.Spec.Rules[0].Backoff = "10m" }, 0, 1, false},
		"then it begins":      {func(f *v1alpha1.HTCWorkflow) { f.Spec.Rules[0].Backoff = "10m" }, 11 * time.Minute, 2, true},
		"nobody waits for a deadline": {func(f *v1alpha1.HTCWorkflow) {
			f.Spec.Rules[0].Backoff, f.Spec.ActiveDeadlineSeconds = "10m", new(int64(60))
		}, 0, 2, true},
		"enough have succeeded besides":  {func(f *v1alpha1.HTCWorkflow) { f.Spec.Sequences.Complete = new(int32(1)) }, 0, 2, false},
		"not enough have":                {func(f *v1alpha1.HTCWorkflow) { f.Spec.Sequences.Complete = new(int32(2)) }, 0, 2, true},
		"of a step that nobody measured": {func(f *v1alpha1.HTCWorkflow) { f.Spec.Rules[0].Step = "keep" }, 0, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(repeated(c.change))
			w.measures(1, bad)
			w.ends(1)
			w.later(c.later)
			require.Len(t, w.flow("w").Status.JobID, c.dags)
			require.Equal(t, c.again, w.states(2)["make0"] == "carried", w.states(2))
		})
	}
}

func TestADAGThatRepeatsIsAdoptedWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	w.apply(repeated())
	w.measures(1, map[int]float64{0: 1, 1: 3, 2: 2})
	w.ends(1)
	before, nodes := w.flow("w").Status, w.states(2)
	require.Equal(t, []string{"1.0", "2.0"}, before.JobID)
	w.openLedger()
	w.wait()
	status := w.flow("w").Status
	require.Equal(t, before.JobID, status.JobID)
	require.Equal(t, before.Nodes, status.Nodes)
	require.Equal(t, nodes, w.states(2))
	w.measures(2, map[int]float64{1: 5})
	w.ends(2)
	w.fetchAgain("w")
	require.Equal(t, []string{"1.0", "2.0", "3.0"}, w.flow("w").Status.JobID, "it was repeated as often as it may be")
	w.ends(3)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("w").Status.Phase)
}

func TestWhatADAGRepeatsStandsInItsAd(t *testing.T) {
	s := Situation{Workflow: repeated()}
	for text, want := range map[string][]ledger.Occasion{
		"":        nil,
		"0:0-1":   {{Sequence: 0}, {Sequence: 1}},
		"0:2":     {{Sequence: 2}},
		"0:3":     nil,
		"1:0":     nil,
		"-1:0":    nil,
		"0":       nil,
		"0:0;x:1": nil,
	} {
		var got []ledger.Occasion
		for _, r := range s.readRepeats(text) {
			got = append(got, r.Occasion)
		}
		require.Equal(t, want, got, text)
		if want != nil {
			require.Equal(t, text, writeRepeats(want))
		}
	}
	var many []ledger.Occasion
	for n := range 1000 {
		many = append(many, ledger.Occasion{Sequence: 2 * n})
	}
	require.Empty(t, writeRepeats(many))
}

func TestWhatComesAfterRepeatedSequencesIsKeptByAResumedAttempt(t *testing.T) {
	w := newWorld(t)
	w.apply(repeated(func(f *v1alpha1.HTCWorkflow) {
		f.Spec.Resume = v1alpha1.ResumeFromFailure
		f.Spec.Finally = &v1alpha1.StepWork{Name: "finally", Job: f.Spec.Steps[0].Job}
	}))
	w.measures(1, map[int]float64{0: 1, 1: 3, 2: 2})
	w.ends(1)
	w.measures(2, map[int]float64{1: 1})
	w.ends(2)
	for _, dir := range []string{"make/job_0", "fit/job_0", "keep/job_0", "make/job_1", "fit/job_1", "keep/job_1",
		"make/job_2", "fit/job_2", "keep/job_2", "plot/all"} {
		require.NoError(t, os.MkdirAll(filepath.Join(w.Output.Root, "default", "w", "1", dir), 0o700))
	}
	w.ends(3)
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		n, err := tx.Node("uid-w", 4, 0)
		n.Status, n.ExitCode, n.Source = ledger.StatusFailed, new(3), "history"
		return errors.Join(err, tx.UpdateNode(n))
	}))
	w.ends(4)
	require.Equal(t, v1alpha1.PhaseFailed, w.flow("w").Status.Phase)
	w.rerun("w", "again")
	w.ends(5)
	require.Equal(t, map[string]string{"plot/": "carried"}, w.states(6), "nothing before it has run again")
}

func TestWhatSeveralRulesDoAtOnceIsOneEvent(t *testing.T) {
	w := newWorld(t)
	w.apply(repeated(func(flow *v1alpha1.HTCWorkflow) {
		flow.Spec.Rules = append(flow.Spec.Rules, v1alpha1.Rule{Step: "fit", Metric: "chi2", When: "value < 2",
			Action: v1alpha1.ActionRepeat})
	}))
	w.measures(1, map[int]float64{0: 1, 1: 3, 2: 2})
	w.ends(1)
	require.NoError(t, w.measure(t.Context(), "default/w"))
	acted := slices.DeleteFunc(slices.Clone(w.told), func(e string) bool { return !strings.HasPrefix(e, "RuleActed") })
	require.Len(t, acted, 1, "client-go would drop the words of a second one")
	require.Contains(t, acted[0], "RuleActed: rule 1 (fit.chi2, value > 2): it is 3 in job_1; ")
	require.Contains(t, acted[0], "; rule 2 (fit.chi2, value < 2): it is 1 in job_0; ")
}
