package workflow

import (
	"context"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

// maxJobs returns how many nodes of a DAG with these steps may be in the queue, 0 for any number. atWork is how many
// sequences may be at work at a time: DAGMan sends depth first, so as many jobs as so many sequences have side by side
// belong to about so many sequences.
func maxJobs(w *v1alpha1.HTCWorkflow, g *graph.Graph, steps []int, atWork int) int {
	most := 0
	if t := w.Spec.Throttle; t != nil {
		most = valueOf(t.MaxJobs)
	}
	if atWork == 0 {
		return most
	}
	widest := 1
	for _, i := range steps {
		if step := g.Steps[i]; !step.All {
			widest = max(widest, step.Each)
		}
	}
	if n := atWork * widest; most == 0 || n < most {
		most = n
	}
	return most
}

// atWork returns how many sequences may be at work at a time: what the rule that acted last has made of it, else what
// the spec says; 0: all.
func (s Situation) atWork() int {
	if changed := s.changedByRule(); changed > 0 && !s.due() {
		return changed
	}
	if spec := s.Workflow.Spec.Sequences; spec != nil {
		return valueOf(spec.MaxConcurrent)
	}
	return 0
}

// changedByRule returns what a rule has made of spec.sequences.maxConcurrent in this attempt, 0 if none has.
func (s Situation) changedByRule() int {
	var last ledger.RuleState
	for _, r := range s.Rules {
		if r.MaxConcurrent > 0 && !r.Acted.Before(last.Acted) {
			last = r
		}
	}
	return last.MaxConcurrent
}

// jobsNow returns how many nodes of the newest DAG may be in the queue, 0 for any number.
func (s Situation) jobsNow() int {
	var steps []int
	for _, step := range s.newest().Steps {
		steps = append(steps, step.Number)
	}
	return maxJobs(s.Workflow, s.Graph, steps, s.atWork())
}

// resized reports whether the newest DAG does not keep yet to what rules have made of maxConcurrent. A DAG that was
// sent later does.
func (s Situation) resized() bool {
	return s.ruled() && slices.ContainsFunc(s.Rules, s.unapplied)
}

// resizes reports whether rules may change maxConcurrent: DAGMan is then told.
func resizes(w *v1alpha1.HTCWorkflow) bool {
	return slices.ContainsFunc(w.Spec.Rules, func(r v1alpha1.Rule) bool {
		return r.Action == v1alpha1.ActionGrow || r.Action == v1alpha1.ActionShrink
	})
}

func (s Situation) unapplied(r ledger.RuleState) bool {
	return !r.Applied && r.DAG == s.newest().Run.Attempt
}

// resize starts DAGMan again with the limit that holds now. What interrupts it does no harm: it is repeated.
func (c *Controller) resize(ctx context.Context, w *v1alpha1.HTCWorkflow, s Situation) error {
	run := s.newest().Run
	by, err := c.poolOf(ctx, w, s)
	if err != nil {
		return err
	}
	steps, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Step, error) {
		return tx.Steps(run.UID, run.Attempt)
	})
	if err != nil {
		return err
	}
	n := c.atOnce(c.throttled(submit.DAG{MaxJobs: s.jobsNow()}, by, s).MaxJobs, by, steps)
	err = c.eachSender(ctx, backend.TargetOf(run), func(id schedd.Identity) error {
		_, err := c.Schedd.Change(ctx, id, schedd.SetMaxJobs{
			Tag: condor.Tag{UID: run.UID, Attempt: run.Attempt}, Cluster: run.Cluster, Jobs: n,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("tell DAGMan %d.0 that %d jobs may be in the queue: %w", run.Cluster, n, err)
	}
	first := s.DAGs[0].Run
	return c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		for _, r := range s.Rules {
			if s.unapplied(r) {
				if err := tx.ApplyRule(first.UID, first.Attempt, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
