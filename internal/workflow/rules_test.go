package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// ruled is a situation of one DAG of which sequences are at work, with one rule.
func ruled(t *testing.T, r v1alpha1.Rule, metrics ...v1alpha1.MetricStatus) Situation {
	s := newSituation(t, func(w *v1alpha1.HTCWorkflow) {
		w.Spec.Sequences.Count = new(int32(20))
		w.Spec.Rules = []v1alpha1.Rule{r}
	}).with(of(0, ledger.Counts{Active: 12, Succeeded: 5, Failed: 3}))
	s.Measured = measured{1, metrics}
	return s
}

func TestWhatARuleIsAbout(t *testing.T) {
	chi2 := v1alpha1.MetricStatus{Step: "a", Metric: "chi2", Count: 7, Mean: 2.5, Variance: 4, Min: 1, Max: 9, IQR: 3, MAD: 2}
	for name, c := range map[string]struct {
		rule  v1alpha1.Rule
		value float64
		is    bool
	}{
		"sequences that succeeded": {v1alpha1.Rule{Metric: "success"}, 5, true},
		"nodes that succeeded":     {v1alpha1.Rule{Step: "a", Metric: "success"}, 5, true},
		"nodes that failed":        {v1alpha1.Rule{Step: "a", Metric: "failure"}, 3, true},
		"nodes of another step":    {v1alpha1.Rule{Step: "b", Metric: "failure"}, 0, true},
		"a mean":                   {v1alpha1.Rule{Step: "a", Metric: "chi2", Function: "mean"}, 2.5, true},
		"a count":                  {v1alpha1.Rule{Step: "a", Metric: "chi2", Function: "count"}, 7, true},
		"a variance":               {v1alpha1.Rule{Step: "a", Metric: "chi2", Function: "variance", MinCount: new(int32(7))}, 4, true},
		"too few":                  {v1alpha1.Rule{Step: "a", Metric: "chi2", Function: "mad", MinCount: new(int32(8))}, 2, false},
		"of another name":          {v1alpha1.Rule{Step: "a", Metric: "n", Function: "min"}, 0, false},
		"none is a count":          {v1alpha1.Rule{Step: "a", Metric: "n", Function: "count"}, 0, true},
		"a step of no results":     {v1alpha1.Rule{Step: "b", Metric: "chi2", Function: "iqr"}, 0, false},
	} {
		value, _, is := ruled(t, c.rule, chi2).numberOf(c.rule)
		require.Equal(t, c.is, is, name)
		require.Equal(t, c.value, value, name)
	}
	s := ruled(t, v1alpha1.Rule{})
	s.Measured.attempt = 0
	_, _, is := s.numberOf(v1alpha1.Rule{Step: "a", Metric: "n", Function: "count"})
	require.False(t, is, "nothing has been summed up since the start")
}

func TestARuleFinishesOnce(t *testing.T) {
	finish := v1alpha1.Rule{Step: "a", Metric: "failure", When: "value >= 3", Action: v1alpha1.ActionFinish}
	s := ruled(t, finish)
	a, acts := s.decide(0)
	require.True(t, acts)
	require.Equal(t, "rule 1 (a.failure, value >= 3): it is 3; what is left of the sequences is no longer needed", a.Message)
	s.Acted = []ledger.Acted{a}
	require.True(t, s.untold())
	_, acts = s.decide(0)
	require.False(t, acts, "also after a restart")
	require.Equal(t, Decision{Action: Stop, Reason: crosscheck.StopFinished, Message: crosscheck.StopMessage(crosscheck.StopFinished)}, Plan(s))
	require.Equal(t, 5, s.wanted(), "those that have succeeded are enough")

	finish.When = "value > 3"
	_, acts = ruled(t, finish).decide(0)
	require.False(t, acts)
	s = ruled(t, v1alpha1.Rule{Metric: "held", When: "value < 1"})
	s.DAGs[0].Sequences.Active = 0
	_, acts = s.decide(0)
	require.False(t, acts, "nothing is left to remove")
}

func TestRulesLookAtNothingThatHasEnded(t *testing.T) {
	finish := v1alpha1.Rule{Metric: "success", When: "value >= 0", Action: v1alpha1.ActionFinish}
	require.True(t, ruled(t, finish).ruled())
	for name, change := range map[string]func(*Situation){
		"stopped":   func(s *Situation) { s.DAGs[0].Run.Stop = crosscheck.StopDeadline },
		"ended":     func(s *Situation) { s.DAGs[0].Run.Confirmed = true },
		"an intent": func(s *Situation) { s.DAGs[0].Run.State = ledger.Intent },
		"suspended": func(s *Situation) { s.Workflow.Spec.Suspend = true },
		"edited":    func(s *Situation) { s.DAGs[0].Run.SpecHash = "other" },
		"finally":   func(s *Situation) { s.DAGs[0].Steps[0].Number = 2 },
	} {
		s := ruled(t, finish)
		change(&s)
		require.False(t, s.ruled(), name)
	}
	require.ErrorContains(t, checkRules([]v1alpha1.Rule{{When: "value > x"}}), "spec.rules[0].when: expected comparisons")
}
