package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

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
		if _, err := paceOf(r); err != nil {
			return fmt.Errorf("spec.rules[%d].backoff: %w", i, err)
		}
	}
	return nil
}

func paceOf(r v1alpha1.Rule) (p rules.Pace, err error) {
	p.Times = valueOf(r.Times)
	if r.Action == v1alpha1.ActionFinish {
		p.Times = 1
	}
	if r.Backoff != "" {
		p.Backoff, err = time.ParseDuration(r.Backoff)
	}
	return p, err
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

// decideRule returns what becomes of a rule's state, whether that is something else than before, and when to look at it again.
func (s Situation) decideRule(i int) (is ledger.RuleState, differs bool, again time.Time) {
	was := ledger.RuleState{Rule: i, Told: true}
	if at := slices.IndexFunc(s.Rules, func(r ledger.RuleState) bool { return r.Rule == i }); at >= 0 {
		was = s.Rules[at]
	}
	r := s.Workflow.Spec.Rules[i]
	condition, err := rules.Parse(r.When)
	pace, wrong := paceOf(r)
	if err != nil || wrong != nil {
		return was, false, time.Time{} // the attempt was refused
	}
	number, of, known := s.numberOf(r)
	holds := known && condition.Holds(number)
	next, acts, again := pace.Next(rules.State{Holds: was.Holds, Acts: was.Acts, Acted: was.Acted}, holds, s.Now)
	is = was
	is.Holds = next.Holds
	what, size := s.effect(r)
	if acts && what == "" {
		return was, false, time.Time{} // it may have one later
	}
	if acts {
		is.Acts, is.Acted, is.DAG, is.MaxConcurrent, is.Told = next.Acts, next.Acted, s.newest().Run.Attempt, size, false
		is.Message = fmt.Sprintf("rule %d (%s, %s): it is %.6g%s; %s", i+1, nameOf(r), r.When, number, among(of), what)
		if pace.Backoff > 0 {
			again = s.Now.Add(max(pace.Backoff, rules.LeastPause))
		}
	}
	return is, is != was, again
}

// finishedByRule reports whether a rule has finished a DAG.
func (s Situation) finishedByRule(d DAG) bool {
	return slices.ContainsFunc(s.Rules, func(r ledger.RuleState) bool { return r.Acts > 0 && r.MaxConcurrent == 0 && r.DAG == d.Run.Attempt })
}

// effect says what an action does now, "" if nothing, and what it makes of maxConcurrent, 0 if nothing.
func (s Situation) effect(r v1alpha1.Rule) (what string, size int) {
	now, by := s.atWork(), max(valueOf(r.By), 1)
	switch r.Action {
	case v1alpha1.ActionFinish:
		if s.newest().Sequences.Active == 0 {
			return "", 0
		}
		return "what is left of the sequences is no longer needed", 0
	case v1alpha1.ActionGrow:
		most := s.total()
		if r.Max != nil {
			most = min(most, valueOf(r.Max))
		}
		size = max(now, min(now+by, most))
	default:
		size = min(now, max(now-by, valueOf(r.Min), 1))
	}
	if size == now {
		return "", 0
	}
	return fmt.Sprintf("sequences.maxConcurrent is %d now, instead of %d", size, now), size
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

// applyRules lets the rules of a workflow act, one after the other. What one does is in the ledger before anything else knows of it; the Event is
// repeated if htcd ended before it. It returns when to look at them again if nothing changes.
func (c *Controller) applyRules(ctx context.Context, s Situation) (again time.Time, err error) {
	first := s.DAGs[0].Run
	acted := false
	for i := range s.Workflow.Spec.Rules {
		is, differs, at := s.decideRule(i)
		again = earliest(again, at)
		if !differs {
			continue
		}
		ended := false
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			now, err := tx.Run(s.newest().Run.UID, s.newest().Run.Attempt)
			if ended = err == nil && now.Stop != ""; err != nil || ended {
				return err
			}
			return tx.SetRuleState(first.UID, first.Attempt, is)
		})
		if err != nil || ended {
			return time.Time{}, err
		}
		acted = acted || !is.Told
		s.Rules = append(slices.DeleteFunc(slices.Clone(s.Rules), func(r ledger.RuleState) bool { return r.Rule == i }), is)
	}
	for _, r := range s.Rules {
		if r.Told {
			continue
		}
		c.Events.Normal(s.Workflow, "RuleActed", r.Message)
		c.Log.Info().Str("workflow", keyOf(first)).Str("rule", r.Message).Msg("a rule has acted")
		r.Told = true
		if err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.SetRuleState(first.UID, first.Attempt, r) }); err != nil {
			return time.Time{}, err
		}
	}
	if acted {
		c.queue.Add(keyOf(first))
	}
	return again, nil
}
