package workflow

import (
	"context"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/lifecycle"
	"htc.cern.ch/htcd/internal/rules"
)

// checkRules returns what is wrong with rules that the CRD lets pass.
func checkRules(all []v1alpha1.Rule) error {
	for i, r := range all {
		if _, err := rules.Parse(r.When); err != nil {
			return fmt.Errorf("spec.rules[%d].when: %w", i, err)
		}
	}
	return nil
}

// ruled reports whether rules may act: the newest DAG is in HTCondor, goes on, and is not that of finally.
func (s Situation) ruled() bool {
	if len(s.Workflow.Spec.Rules) == 0 || s.Graph == nil || len(s.DAGs) == 0 {
		return false
	}
	dag := s.newest()
	return dag.Run.State == ledger.Submitted && dag.Run.Stop == "" && !dag.Run.Confirmed && !s.Workflow.Spec.Suspend && !s.changed() &&
		s.level(*dag) >= 0 && !s.inFinally()
}

// numberOf returns the number that a rule is about, and of how many results it is; none: there is no such number yet.
func (s Situation) numberOf(r v1alpha1.Rule) (number float64, of int, is bool) {
	if r.Function == "" {
		return float64(s.countOf(r)), 0, true
	}
	i := slices.IndexFunc(s.Measured.metrics, func(m v1alpha1.MetricStatus) bool { return m.Step == r.Step && m.Metric == r.Metric })
	if s.Measured.attempt != s.Attempt {
		return 0, 0, false
	}
	if i < 0 {
		return 0, 0, r.Function == v1alpha1.FunctionCount && r.MinCount == nil
	}
	m := s.Measured.metrics[i]
	number = map[v1alpha1.MetricFunction]float64{
		v1alpha1.FunctionCount: float64(m.Count), v1alpha1.FunctionMean: m.Mean, v1alpha1.FunctionVariance: m.Variance,
		v1alpha1.FunctionMin: m.Min, v1alpha1.FunctionMax: m.Max, v1alpha1.FunctionIQR: m.IQR, v1alpha1.FunctionMAD: m.MAD,
	}[r.Function]
	return number, int(m.Count), int(m.Count) >= valueOf(r.MinCount)
}

// countOf returns a count of sequences or jobs.
func (s Situation) countOf(r v1alpha1.Rule) int {
	n, failed := s.nodes(), 0
	succeeded := s.succeeded()
	for _, d := range s.DAGs {
		failed += d.Sequences.Failed
	}
	if r.Step != "" {
		n = v1alpha1.NodeCounts{}
		for i, step := range s.Graph.Steps {
			if step.Name == r.Step {
				n = counted(s.steps()[i])
			}
		}
		succeeded, failed = int(n.Done), int(n.Failed)
	}
	switch r.Metric {
	case v1alpha1.MetricSuccess:
		return succeeded
	case v1alpha1.MetricFailure:
		return failed
	case v1alpha1.MetricQueued:
		return int(n.Idle)
	case v1alpha1.MetricRunning:
		return int(n.Running)
	}
	return int(n.Held)
}

// decide returns what a rule does now, if anything.
func (s Situation) decide(i int) (a ledger.Acted, acts bool) {
	r := s.Workflow.Spec.Rules[i]
	condition, err := rules.Parse(r.When)
	done := slices.ContainsFunc(s.Acted, func(a ledger.Acted) bool { return a.Rule == i })
	if err != nil || done || s.newest().Sequences.Active == 0 { // with an error the attempt was refused
		return a, false
	}
	number, of, known := s.numberOf(r)
	if !known || !condition.Holds(number) {
		return a, false
	}
	message := fmt.Sprintf("rule %d (%s, %s): it is %.6g%s; what is left of the sequences is no longer needed", i+1, nameOf(r), r.When, number, among(of))
	return ledger.Acted{Rule: i, At: s.Now, DAG: s.newest().Run.Attempt, Message: message}, true
}

// finishedByRule reports whether a rule has finished a DAG.
func (s Situation) finishedByRule(d DAG) bool {
	return slices.ContainsFunc(s.Acted, func(a ledger.Acted) bool { return a.DAG == d.Run.Attempt })
}

func nameOf(r v1alpha1.Rule) string {
	name := r.Metric
	if r.Step != "" {
		name = string(r.Step) + "." + name
	}
	if r.Function != "" {
		name = string(r.Function) + " of " + name
	}
	return name
}

func among(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", of %s", lifecycle.Plural(n, "result"))
}

// applyRules lets the rules of a workflow act. What one does is in the ledger before anything else knows of it.
func (c *Controller) applyRules(ctx context.Context, s *Situation) error {
	first := s.DAGs[0].Run
	for i := range s.Workflow.Spec.Rules {
		a, acts := s.decide(i)
		if !acts {
			continue
		}
		stopped := false
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			now, err := tx.Run(s.newest().Run.UID, s.newest().Run.Attempt)
			if stopped = err == nil && now.Stop != ""; err != nil || stopped {
				return err
			}
			return tx.SetActed(first.UID, first.Attempt, a)
		})
		if err != nil || stopped {
			return err
		}
		c.Observer.RuleActed(s.Workflow.Spec.Rules[i].Action)
		s.Acted = append(s.Acted, a)
		c.queue.Add(keyOf(first))
	}
	return nil
}

// untold reports whether an Event is still to be made.
func (s Situation) untold() bool {
	return slices.ContainsFunc(s.Acted, func(a ledger.Acted) bool { return !a.Told })
}

// tell makes the Events of what rules have done, also of what they did before htcd began.
func (c *Controller) tell(ctx context.Context, s Situation) error {
	first := s.DAGs[0].Run
	for _, a := range s.Acted {
		if a.Told {
			continue
		}
		c.Events.Normal(s.Workflow, "RuleActed", a.Message)
		c.Log.Info().Str("workflow", keyOf(first)).Str("rule", a.Message).Msg("a rule has acted")
		a.Told = true
		if err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.SetActed(first.UID, first.Attempt, a) }); err != nil {
			return err
		}
	}
	return nil
}
