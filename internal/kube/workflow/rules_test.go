package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// ruled is a situation of one DAG of which sequences are at work, with one rule.
func ruled(t *testing.T, r v1alpha1.Rule, metrics ...v1alpha1.MetricStatus) Situation {
	s := newSituation(t, func(w *v1alpha1.HTCWorkflow) {
		w.Spec.Sequences.Count = new(int32(20))
		w.Spec.Rules = []v1alpha1.Rule{r}
	}).with(of(0, ledger.Counts{Active: 12, Succeeded: 5, Failed: 3}))
	s.Measured = measured{attempt: 1, metrics: metrics}
	return s
}

func TestWhatARuleIsAbout(t *testing.T) {
	chi2 := v1alpha1.MetricStatus{
		Step:     "a",
		Metric:   "chi2",
		Count:    7,
		Mean:     2.5,
		Variance: 4,
		Min:      1,
		Max:      9,
		IQR:      3,
		MAD:      2,
	}
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
	is, differs, again := s.decide(0)
	require.True(t, differs)
	require.Zero(t, again)
	require.Equal(
		t,
		"rule 1 (a.failure, value >= 3): it is 3; what is left of the sequences is no longer needed",
		is.Message,
	)
	s.Rules = []ledger.RuleState{is}
	require.True(t, s.untold())
	_, differs, _ = s.decide(0)
	require.False(t, differs, "also after a restart")
	require.Equal(
		t,
		Decision{
			Action:  Stop,
			Reason:  crosscheck.StopFinished,
			Message: crosscheck.StopMessage(crosscheck.StopFinished),
		},
		Plan(s),
	)
	require.Equal(t, 5, s.wanted(), "those that have succeeded are enough")

	finish.When = "value > 3"
	_, differs, _ = ruled(t, finish).decide(0)
	require.False(t, differs)
	s = ruled(t, v1alpha1.Rule{Metric: "held", When: "value < 1", Action: v1alpha1.ActionFinish})
	s.DAGs[0].Sequences.Active = 0
	_, differs, _ = s.decide(0)
	require.False(t, differs, "nothing is left to remove")
}

func TestRulesChangeHowManySequencesAreAtWork(t *testing.T) {
	grow := v1alpha1.Rule{
		Metric: "queued",
		When:   "value < 10",
		Action: v1alpha1.ActionGrow,
		By:     new(int32(4)),
		Max:    new(int32(16)),
	}
	shrink := v1alpha1.Rule{
		Step:   "a",
		Metric: "failure",
		When:   "value > 2",
		Action: v1alpha1.ActionShrink,
		By:     new(int32(9)),
		Min:    new(int32(2)),
	}
	for name, c := range map[string]struct {
		rule    v1alpha1.Rule
		at      int // sequences.maxConcurrent; 0: none
		running int
		size    int // 0: nothing is done
	}{
		"more":                       {grow, 10, 10, 14},
		"up to max":                  {grow, 15, 12, 16},
		"not beyond":                 {grow, 16, 12, 0},
		"nor the sequences":          {v1alpha1.Rule{Metric: "queued", When: "value < 10", Action: v1alpha1.ActionGrow, By: new(int32(50))}, 12, 12, 20},
		"by 1":                       {v1alpha1.Rule{Metric: "queued", When: "value < 10", Action: v1alpha1.ActionGrow}, 12, 12, 13},
		"not before half of it runs": {grow, 12, 5, 0},
		"none are kept back":         {grow, 0, 12, 0},
		"fewer":                      {shrink, 12, 12, 3},
		"down to min":                {shrink, 10, 0, 2},
		"not below":                  {shrink, 2, 2, 0},
		"fewer than all":             {shrink, 0, 12, 11},
	} {
		t.Run(name, func(t *testing.T) {
			s := ruled(t, c.rule)
			if c.at > 0 {
				s.Workflow.Spec.Sequences.MaxConcurrent = new(int32(c.at))
			}
			s.DAGs[0].Run.SpecHash = s.Workflow.SpecHash()
			s.DAGs[0].Steps[0].Running = c.running
			is, differs, _ := s.decide(0)
			require.Equal(t, c.size > 0, differs)
			require.Equal(t, c.size, is.MaxConcurrent)
			if c.size == 0 {
				return
			}
			s.Rules = []ledger.RuleState{is}
			require.Equal(t, Decision{Action: Resize}, Plan(s))
			require.Equal(t, c.size, s.jobsNow())
			_, differs, _ = s.decide(0)
			require.False(t, differs, "once for each occasion")
			s.Rules[0].Applied = true
			require.Equal(t, Decision{Action: Rest}, Plan(s))
			s.Rules[0].Applied, s.Rules[0].DAG = false, 7
			require.Equal(t, Decision{Action: Rest}, Plan(s), "one that was sent later keeps to it")
		})
	}
}

func TestAnActionIsCarriedThroughAfterARestart(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("grown")
	flow.Spec.Sequences = &v1alpha1.Sequences{Count: new(int32(8)), MaxConcurrent: new(int32(2))}
	flow.Spec.Rules = []v1alpha1.Rule{
		{Metric: "queued", When: "value < 10", Action: v1alpha1.ActionGrow, By: new(int32(3))},
	}
	w.apply(flow)
	run := func(sql func(tx *ledger.Tx) error) { require.NoError(t, w.book.Write(t.Context(), sql)) }
	run(func(tx *ledger.Tx) error {
		return tx.SetRuleState(
			"uid-grown",
			1,
			ledger.RuleState{
				Action:        "Grow",
				Holds:         true,
				Acts:          1,
				Acted:         w.clock,
				DAG:           1,
				MaxConcurrent: 5,
				Message:       "grown",
			},
		)
	})
	w.schedd.Fail(scheddtest.SetMaxJobs, scheddtest.Fault{Err: &condor.Error{Kind: condor.Unreachable}, After: true})
	w.restart()
	w.settle()
	w.later(reconciler.LastRetry)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.SetMaxJobs))
	require.Equal(t, 5, w.schedd.MaxJobs(1))
	require.EqualValues(t, 5, w.flow("grown").Status.MaxConcurrent)
	w.restart()
	w.settle()
	require.Equal(t, 2, w.schedd.Calls(scheddtest.SetMaxJobs))
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
	require.ErrorContains(
		t,
		checkRules([]v1alpha1.Rule{{When: "value > x"}}),
		"spec.rules[0].when: expected comparisons",
	)
}
