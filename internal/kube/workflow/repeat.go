package workflow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/workflow/rules"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

// A rule with the action Repeat is looked at when a DAG has ended and its output is here. What it then has sequences
// repeat is one more DAG of the same level. That has all nodes of these sequences: those that run again, and the others
// as done, as with spec.resume; from these what is pulled is spooled again. Their rows move to the new DAG with its
// intent, and the occasions are recorded with it:
//
//	DAG of a level ──ended, fetched──> occasions due? ──yes──> intent, occasions, rows ──> its DAG ──ended, fetched──> ...
//	                                        └──no──> the next level

// repetition is what the rules want repeated of the newest level, once its DAGs have ended.
type repetition struct {
	waits bool         // for the output, with which results may come
	all   []repeatable // by sequence
	spent string       // what rules would still have repeated, had they not acted as often as they may; empty: nothing
}

// repeatable is an occasion, and from when on it is due.
type repeatable struct {
	ledger.Occasion
	at        time.Time
	succeeded bool // the sequence has, so far
}

// repeats reports whether a workflow has rules with that action.
func repeats(w *v1alpha1.HTCWorkflow) bool {
	return slices.ContainsFunc(w.Spec.Rules, func(r v1alpha1.Rule) bool { return r.Action == v1alpha1.ActionRepeat })
}

// repeatsStep returns the number of the step from which a rule repeats on, if that is of the newest level.
func (s Situation) repeatsStep(r v1alpha1.Rule) (step int, is bool) {
	if r.Action != v1alpha1.ActionRepeat {
		return 0, false
	}
	step = slices.IndexFunc(s.Graph.Steps, func(g graph.Step) bool { return g.Name == r.Step })
	return step, step >= 0 && !s.Graph.Steps[step].All && s.Graph.Steps[step].Level == s.level(*s.newest())
}

// mayRepeat reports whether a rule may have steps of the newest level repeated: it has ended by itself, and what
// follows can still succeed.
func (s Situation) mayRepeat() bool {
	return s.mayAdd() &&
		slices.ContainsFunc(s.Workflow.Spec.Rules, func(r v1alpha1.Rule) bool { _, is := s.repeatsStep(r); return is })
}

// mayAdd reports whether another DAG of the newest level may follow: that has ended by itself, and what comes after it
// can still succeed.
func (s Situation) mayAdd() bool {
	if len(s.DAGs) == 0 || s.Graph == nil || s.changed() {
		return false
	}
	dag := s.newest()
	return dag.Run.State == ledger.Submitted && dag.Run.Stop == "" && dag.settled() && !s.stopped(*dag) &&
		s.level(*dag) >= 0 &&
		len(s.failedSteps()) == 0
}

// repeatables finds what rules want repeated, and says which would want that still.
func (s Situation) repeatables(tx *ledger.Tx) (all []repeatable, spent string, err error) {
	first := s.DAGs[0].Run
	for i, r := range s.Workflow.Spec.Rules {
		step, is := s.repeatsStep(r)
		condition, wrong := rules.Parse(r.When)
		pace, bad := paceOf(r)
		if !is || wrong != nil || bad != nil {
			continue
		}
		times, err := tx.Repeated(first.UID, first.Attempt, i)
		if err != nil {
			return nil, "", err
		}
		most, still := max(pace.Times, 1), map[int]bool{}
		for _, d := range s.DAGs {
			err := tx.SequenceResults(
				d.Run.UID,
				d.Run.Attempt,
				step,
				r.Metric,
				func(o ledger.Occasion, succeeded bool) {
					switch o.Rule = i; {
					case !condition.Holds(o.Value):
					case times[o.Sequence] < most:
						times[o.Sequence] = most + 1 // of several jobs one is enough
						all = append(all, repeatable{o, d.Run.Ended.Add(pace.Backoff), succeeded})
					case times[o.Sequence] == most && r.When != "": // without, as often is all that was wanted
						still[o.Sequence] = true
					}
				},
			)
			if err != nil {
				return nil, "", err
			}
		}
		if len(still) > 0 && spent == "" {
			spent = fmt.Sprintf(
				"%s of step %s still meets %q in %s, which has been repeated as often as spec.rules[%d].times says (%d)",
				r.Metric,
				r.Step,
				r.When,
				lifecycle.Plural(len(still), "sequence"),
				i,
				most,
			)
		}
	}
	slices.SortStableFunc(all, func(a, b repeatable) int { return a.Sequence - b.Sequence })
	return all, spent, nil
}

// maxRepeats limits what DAGMan's ad says of what it repeats, in bytes.
const maxRepeats = 1000

// writeRepeats says in DAGMan's ad which sequences are repeated by which rules, such as 0:1-3,7;2:5, so that a lost
// ledger can be told. It is empty if it would be long: then such a DAG cannot be adopted.
func writeRepeats(all []ledger.Occasion) string {
	sequences := map[int][]int{}
	for _, o := range all {
		sequences[o.Rule] = append(sequences[o.Rule], o.Sequence)
	}
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(sequences)) {
		parts = append(parts, fmt.Sprintf("%d:%s", rule, procset.Of(sequences[rule])))
	}
	if text := strings.Join(parts, ";"); len(text) <= maxRepeats {
		return text
	}
	return ""
}

// readRepeats reads that; none if htcd cannot have written it.
func (s Situation) readRepeats(text string) (all []repeatable) {
	if text == "" || len(text) > maxRepeats {
		return nil
	}
	for part := range strings.SplitSeq(text, ";") {
		number, set, _ := strings.Cut(part, ":")
		rule, wrong := strconv.Atoi(number)
		sequences, err := procset.Parse(set, s.total())
		if wrong != nil || err != nil || rule < 0 || rule >= len(s.Workflow.Spec.Rules) {
			return nil
		}
		for _, sequence := range sequences.Numbers() {
			all = append(all, repeatable{Occasion: ledger.Occasion{Rule: rule, Sequence: sequence}, succeeded: true})
		}
	}
	slices.SortStableFunc(all, func(a, b repeatable) int { return a.Sequence - b.Sequence })
	return all
}

// repeating reports whether something of the newest level is to be repeated, or may be.
func (s Situation) repeating() bool {
	return s.Repeat.waits || len(s.Repeat.all) > 0 && !s.enoughWithout()
}

// enoughWithout reports whether enough sequences have succeeded besides those that rules want repeated.
func (s Situation) enoughWithout() bool {
	spec := s.Workflow.Spec.Sequences
	if spec == nil || spec.Complete == nil || s.level(*s.newest()) != s.lastOfSequences() {
		return false
	}
	unwanted, last := 0, -1
	for _, r := range s.Repeat.all {
		if r.succeeded && r.Sequence != last {
			unwanted, last = unwanted+1, r.Sequence
		}
	}
	return s.succeeded()-unwanted >= int(*spec.Complete)
}

// dueToRepeat returns the occasions whose time has come, and when that of the next is. When the deadline has passed
// nothing waits any more: what is left then ends as the deadline says.
func (s Situation) dueToRepeat() (due []ledger.Occasion, next time.Time) {
	for _, r := range s.Repeat.all {
		if r.at.After(s.Now) && !s.overdue() {
			next = earliest(next, r.at)
			continue
		}
		due = append(due, r.Occasion)
	}
	return due, earliest(next, s.deadline())
}

// planRepeat says what to do while something is to be repeated.
func (s Situation) planRepeat() Decision {
	due, next := s.dueToRepeat()
	switch {
	case s.waits(), s.Repeat.waits:
		return Decision{Action: Rest}
	case len(due) == 0:
		return Decision{Action: Rest, At: next}
	}
	return Decision{Action: Submit, Level: s.level(*s.newest())}
}

// occasions returns those of a DAG that is about to begin, or of one that is recorded; none: it repeats nothing.
func (c *Controller) occasions(
	ctx context.Context,
	s Situation,
	recorded *ledger.Run,
) (all []ledger.Occasion, err error) {
	if recorded == nil {
		if s.mayRepeat() && s.repeating() {
			all, _ = s.dueToRepeat()
			return all, nil
		}
		return s.further(), nil
	}
	return ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Occasion, error) {
		return tx.Occasions(recorded.UID, recorded.Attempt)
	})
}

// sequencesOf lists the sequences of occasions, each once.
func sequencesOf(all []ledger.Occasion) (sequences []int) {
	for _, o := range all {
		sequences = append(sequences, o.Sequence)
	}
	return slices.Compact(sequences)
}

// keepsUnrepeated decides which nodes of a DAG that repeats do not run again: those that are done and come after no
// step that is repeated. What has failed in these sequences runs again, too.
func (c *Controller) keepsUnrepeated(
	ctx context.Context,
	s Situation,
	p plannedDAG,
	recorded *ledger.Run,
) (k kept, err error) {
	k.from = s.DAGs[0].Run.OutputDir
	if recorded != nil {
		k.is, err = c.recorded(ctx, *recorded, len(p.nodes))
		return k, err
	}
	again := map[int][]bool{} // by sequence, of each step
	for _, o := range p.occasions {
		if again[o.Sequence] == nil {
			again[o.Sequence] = make([]bool, len(p.graph.Steps))
		}
		if o.Rule == ledger.NoRule {
			continue // none of its nodes was there before
		}
		step, _ := s.repeatsStep(s.Workflow.Spec.Rules[o.Rule])
		again[o.Sequence][step] = true
		for i, after := range p.graph.After(step) {
			again[o.Sequence][i] = again[o.Sequence][i] || after
		}
	}
	was := map[spot]ledger.Carried{}
	err = c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, d := range s.DAGs {
			if s.level(d) != p.level {
				continue
			}
			err := eachDone(tx, d.Run, func(n ledger.Node) {
				if n.Sequence == ledger.AllSequences || again[n.Sequence] != nil {
					was[spotOf(n)] = ledger.Carried{From: n.Attempt, Node: n.Number}
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	done, from := make([]bool, len(p.nodes)), make([]ledger.Carried, len(p.nodes))
	for i, n := range p.nodes {
		from[i], done[i] = was[spotAt(string(p.graph.Steps[n.Step].Name), n.Sequence, n.Index, n.Name)]
		from[i].Number = i
		done[i] = done[i] && (n.Sequence == graph.AllSequences || !again[n.Sequence][n.Step])
	}
	output := former{dir: k.from}
	k.is = p.graph.Kept(p.nodes, done, func(n graph.Node, path string) bool {
		return n.Sequence == graph.AllSequences || output.has(p.graph.Name(n), path) // what is one for all runs once
	})
	for i, is := range k.is {
		if is {
			k.nodes = append(k.nodes, from[i])
		}
	}
	return k, err
}

// repeatStates returns what becomes of the states of rules that have sequences repeat.
func (s Situation) repeatStates(run ledger.Run, p plannedDAG) (states []ledger.RuleState) {
	for i, r := range s.Workflow.Spec.Rules {
		n, first := 0, ledger.Occasion{}
		for _, o := range p.occasions {
			if o.Rule == i {
				if n++; n == 1 {
					first = o
				}
			}
		}
		if n == 0 {
			continue
		}
		is := ledger.RuleState{Rule: i}
		if at := slices.IndexFunc(s.Rules, func(r ledger.RuleState) bool { return r.Rule == i }); at >= 0 {
			is = s.Rules[at]
		}
		is.Action, is.Holds, is.Applied, is.Told = string(r.Action), true, true, false
		is.Acts, is.Acted, is.DAG = is.Acts+1, s.Now, run.Attempt
		is.Message = fmt.Sprintf(
			"rule %d (%s, %s): it is %.6g in %s%s; %s again from %s on",
			i+1,
			nameOf(r),
			conditionOf(r),
			first.Value,
			p.graph.JobID(graph.Node{Sequence: first.Sequence}),
			others(n),
			lifecycle.Plural(n, "sequence"),
			r.Step,
		)
		states = append(states, is)
	}
	return states
}

func others(n int) string {
	if n == 1 {
		return ""
	}
	return ", for example"
}
