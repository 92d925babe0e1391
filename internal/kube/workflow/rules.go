package workflow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/workflow/rules"
	"htc.cern.ch/htcd/internal/ledger"
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

// paceOf returns how often a rule may act.
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

// timed reports whether a rule is about how long scripts of a step run. That is measured for rules alone, as results of
// all nodes of all workflows would cost everybody.
func timed(w *v1alpha1.HTCWorkflow, step v1alpha1.StepName) bool {
	return slices.ContainsFunc(
		w.Spec.Rules,
		func(r v1alpha1.Rule) bool { return r.Step == step && r.Metric == v1alpha1.MetricDuration },
	)
}

// conditionOf says what a rule waits for.
func conditionOf(r v1alpha1.Rule) string { return cmp.Or(r.When, "always") }

// ruled reports whether rules may act: the newest DAG is in HTCondor, goes on, and is not that of finally.
func (s Situation) ruled() bool {
	if len(s.Workflow.Spec.Rules) == 0 || s.Graph == nil || len(s.DAGs) == 0 {
		return false
	}
	dag := s.newest()
	return dag.Run.State == ledger.Submitted && dag.Run.Stop == "" && !dag.Run.Confirmed && !s.suspends() &&
		!s.changed() &&
		s.level(*dag) >= 0 &&
		!s.inFinally()
}

// numberOf returns the number that a rule is about, and of how many results it is; none: there is no such number yet.
func (s Situation) numberOf(r v1alpha1.Rule) (number float64, of int, is bool) {
	if r.Function == "" {
		return float64(s.countOf(r)), 0, true
	}
	i := slices.IndexFunc(
		s.Measured.metrics,
		func(m v1alpha1.MetricStatus) bool { return m.Step == r.Step && m.Metric == r.Metric },
	)
	if s.Measured.attempt != s.Attempt {
		return 0, 0, false
	}
	if i < 0 {
		return 0, 0, r.Function == v1alpha1.FunctionCount && r.MinCount == nil
	}
	m := s.Measured.metrics[i]
	number = map[v1alpha1.MetricFunction]float64{
		v1alpha1.FunctionCount: float64(m.Count), v1alpha1.FunctionMean: m.Mean, v1alpha1.FunctionVariance: m.Variance,
		v1alpha1.FunctionMin: m.Min, v1alpha1.FunctionMax: m.Max, v1alpha1.FunctionIQR: m.IQR,
		v1alpha1.FunctionMAD: m.MAD,
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

// decide returns what becomes of a rule's state, whether that is something else than before, and when to look at it
// again.
func (s Situation) decide(i int) (is ledger.RuleState, differs bool, again time.Time) {
	r := s.Workflow.Spec.Rules[i]
	if r.Action == v1alpha1.ActionRepeat { // that is for ended DAGs
		return is, false, time.Time{}
	}
	was := ledger.RuleState{Rule: i, Action: string(r.Action), Applied: true, Told: true}
	if at := slices.IndexFunc(s.Rules, func(r ledger.RuleState) bool { return r.Rule == i }); at >= 0 {
		was = s.Rules[at]
	}
	condition, err := rules.Parse(r.When)
	pace, wrong := paceOf(r)
	if err != nil || wrong != nil { // the attempt was refused
		return was, false, time.Time{}
	}
	number, of, known := s.numberOf(r)
	next, acts, again := pace.Next(
		rules.State{Holds: was.Holds, Acts: was.Acts, Acted: was.Acted},
		known && condition.Holds(number),
		s.Now,
	)
	is = was
	is.Holds = next.Holds
	if !acts {
		return is, is != was, again
	}
	what, size := s.effect(r)
	if what == "" { // it may have one later
		return was, false, time.Time{}
	}
	is.Acts, is.Acted, is.DAG, is.Told = next.Acts, next.Acted, s.newest().Run.Attempt, false
	is.MaxConcurrent, is.Applied = size, size == 0
	is.Message = fmt.Sprintf(
		"rule %d (%s, %s): it is %.6g%s; %s",
		i+1,
		nameOf(r),
		conditionOf(r),
		number,
		among(of),
		what,
	)
	return is, true, pace.Again(s.Now)
}

// effect says what an action does now, "" if nothing, and what it makes of maxConcurrent, 0 if nothing.
func (s Situation) effect(r v1alpha1.Rule) (what string, size int) {
	dag := s.newest()
	if dag.Sequences.Active == 0 {
		return "", 0
	}
	now, by := cmp.Or(s.atWork(), s.total()), max(valueOf(r.By), 1)
	switch r.Action {
	case v1alpha1.ActionFinish:
		return "what is left of the sequences is no longer needed", 0
	case v1alpha1.ActionGrow:
		// While DAGMan is far from its limit, as in its first seconds, another one changes nothing.
		if 2*dag.inQueue() < s.jobsNow() {
			return "", 0
		}
		size = max(now, min(now+by, s.total(), cmp.Or(valueOf(r.Max), s.total())))
	case v1alpha1.ActionShrink:
		size = min(now, max(now-by, valueOf(r.Min), 1))
	}
	if size == now {
		return "", 0
	}
	return fmt.Sprintf("sequences.maxConcurrent is %d now, instead of %d", size, now), size
}

// inQueue returns how many of its nodes are known to be in HTCondor.
func (d DAG) inQueue() (n int) {
	for _, step := range d.Steps {
		n += step.Idle + step.Running + step.Held
	}
	return n
}

// finishedByRule reports whether a rule has finished a DAG.
func (s Situation) finishedByRule(d DAG) bool {
	return d.Run.Stop == crosscheck.StopFinished || slices.ContainsFunc(s.Rules, func(r ledger.RuleState) bool {
		return r.Acts > 0 && r.Action == string(v1alpha1.ActionFinish) && r.DAG == d.Run.Attempt
	})
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

// applyRules lets the rules of a workflow act, and returns when to look at them again if nothing changes. What one does
// is in the ledger before anything else knows of it.
func (c *Controller) applyRules(ctx context.Context, s *Situation) (again time.Time, err error) {
	first := s.DAGs[0].Run
	for i := range s.Workflow.Spec.Rules {
		is, differs, at := s.decide(i)
		again = earliest(again, at)
		if !differs {
			continue
		}
		stopped := false
		err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
			now, err := tx.Run(s.newest().Run.UID, s.newest().Run.Attempt)
			if stopped = err == nil && now.Stop != ""; err != nil || stopped {
				return err
			}
			return tx.SetRuleState(first.UID, first.Attempt, is)
		})
		if err != nil || stopped {
			return time.Time{}, err
		}
		if is.Acted.Equal(s.Now) {
			c.Observer.RuleActed(s.Workflow.Spec.Rules[i].Action)
		}
		s.Rules = append(
			slices.DeleteFunc(slices.Clone(s.Rules), func(r ledger.RuleState) bool { return r.Rule == i }),
			is,
		)
		c.Changed.Add(keyOf(first))
	}
	return again, nil
}

// earliest returns the earlier of two times, of which the zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// untold reports whether an Event is still to be made.
func (s Situation) untold() bool {
	return slices.ContainsFunc(s.Rules, func(r ledger.RuleState) bool { return !r.Told })
}

// tell makes the Event of what rules have done, also of what they did before htcd began. It is one for all of them:
// client-go takes further ones of the same reason for repetitions of the first, and drops what they say.
func (c *Controller) tell(ctx context.Context, s Situation) error {
	first := s.DAGs[0].Run
	var untold []string
	for _, r := range s.Rules {
		if !r.Told {
			untold = append(untold, r.Message)
			c.Log.Info().Str("workflow", keyOf(first)).Str("rule", r.Message).Msg("a rule has acted")
		}
	}
	if len(untold) == 0 {
		return nil
	}
	c.Events.Normal(s.Workflow, "RuleActed", strings.Join(untold, "; "))
	return c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		for _, r := range s.Rules {
			if r.Told {
				continue
			}
			if err := tx.TellRule(first.UID, first.Attempt, r); err != nil {
				return err
			}
		}
		return nil
	})
}
