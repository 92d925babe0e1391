package workflow

import (
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

// With spec.sequences.completions only as many sequences begin as must succeed. When all of them have ended, and
// nothing is to be repeated, further ones take the place of those that have failed: one more DAG of the same level,
// recorded as one that repeats.

// completions returns how many sequences must succeed for no others to begin; 0: all begin at once.
func completions(w *v1alpha1.HTCWorkflow) int {
	if spec := w.Spec.Sequences; spec != nil {
		return valueOf(spec.Completions)
	}
	return 0
}

// begunAtFirst returns how many of all sequences an attempt begins with.
func begunAtFirst(w *v1alpha1.HTCWorkflow, all int) int {
	if n := completions(w); n > 0 {
		return min(n, all)
	}
	return all
}

// further returns the sequences that are to begin now.
func (s Situation) further() (all []ledger.Occasion) {
	if completions(s.Workflow) == 0 || !s.mayAdd() || s.level(*s.newest()) != s.lastOfSequences() {
		return nil
	}
	begun := s.total()
	for n := range min(s.wanted()-s.succeeded(), s.Workflow.Sequences()-begun) {
		all = append(all, ledger.Occasion{Rule: ledger.NoRule, Sequence: begun + n})
	}
	return all
}

// addition says which sequences a DAG adds; empty: none.
func (p plannedDAG) addition() string {
	if len(p.occasions) == 0 || p.occasions[0].Rule != ledger.NoRule {
		return ""
	}
	n := len(p.occasions)
	return fmt.Sprintf(
		"%s, from %s on, as so many of those before have failed (sequences.completions)",
		lifecycle.Agree(n, "further sequence", "begins", "begin"),
		p.graph.JobID(graph.Node{Sequence: p.occasions[0].Sequence}),
	)
}
