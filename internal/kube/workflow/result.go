package workflow

import (
	"cmp"
	"context"
	"os"
	"slices"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
)

// awaitsOutput reports whether spec.completeAfterOutput keeps a workflow that has succeeded from being called
// Succeeded.
func (s Situation) awaitsOutput() bool {
	return s.Workflow.Spec.CompleteAfterOutput && s.Unfetched && s.over() && s.succeededAll()
}

// givenUp reports whether the output of some of its nodes is not here and never will be.
func (d DAG) givenUp() bool {
	return d.Run.State == ledger.Submitted && d.Job != nil && d.Job.Fetched == ledger.GivenUp
}

// lastStep is the one whose jobs spec.result is about.
func (s Situation) lastStep() int { return len(s.Workflow.Spec.Steps) - 1 }

// hasResult reports whether everything is here that the jobs of the last step have left, so that spec.result can be
// read.
func (s Situation) hasResult() bool {
	if s.lost() || s.Unfetched || !s.over() || !s.succeededAll() || slices.ContainsFunc(s.DAGs, DAG.givenUp) {
		return false
	}
	last, n := s.lastStep(), s.steps()[s.lastStep()]
	return n.Succeeded > 0 && n.Succeeded == n.Total() && n.Succeeded == s.Graph.Totals(s.total())[last] &&
		s.newest().Run.OutputDir != ""
}

// keptResult returns the result that the status has already, nil if it has none or another file is asked for.
func (s Situation) keptResult() *string {
	was := s.Workflow.Status
	if int(was.Attempt) != s.Attempt || was.ObservedGeneration != s.Workflow.Generation {
		return nil
	}
	return was.Result
}

// gatherResult reads what spec.result names, once. What cannot be read leaves the result absent, and is tried again at
// the next visit.
func (c *Controller) gatherResult(ctx context.Context, s *Situation) error {
	if s.Workflow.Spec.Result == "" {
		return nil
	}
	if s.Result = s.keptResult(); s.Result != nil || !s.hasResult() {
		return nil
	}
	nodes, err := ledger.Get(ctx, c.Ledger, s.lastNodes)
	if err != nil {
		return err
	}
	at, err := storedAs(s.DAGs[0].Run) // that of all of them
	if err == nil {
		s.Result, err = reconciler.Result(
			s.Workflow.Spec.Result,
			len(nodes),
			func(i int, file string) (*os.File, error) {
				return c.Output.OpenAt(at, s.nameOf(nodes[i]), file)
			},
		)
	}
	if err != nil {
		c.Log.Warn().Err(err).Str("workflow", s.Workflow.Namespace+"/"+s.Workflow.Name).Msg("the result cannot be read")
	}
	return nil
}

// lastNodes returns those of the last step, in order, as many as a result has room for, and one more.
func (s Situation) lastNodes(tx *ledger.Tx) (all []ledger.Node, err error) {
	last := s.lastStep()
	for _, d := range s.DAGs {
		if !slices.ContainsFunc(d.Steps, func(n ledger.StepCounts) bool { return n.Number == last }) {
			continue
		}
		nodes, err := tx.Nodes(
			d.Run.UID,
			d.Run.Attempt,
			ledger.NodeFilter{Step: &last, Limit: reconciler.MaxResult + 1},
		)
		if err != nil {
			return nil, err
		}
		all = append(all, nodes...)
	}
	slices.SortFunc(all, func(a, b ledger.Node) int { return cmp.Or(a.Sequence-b.Sequence, a.Item-b.Item) })
	return all, nil
}
