package workflow

import (
	"context"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
)

// gather reads everything the decision needs.
func (c *Controller) gather(ctx context.Context, w *v1alpha1.HTCWorkflow) (Situation, error) {
	s := Situation{Workflow: w}
	g, _ := graph.New(w.Spec) // what is wrong with it is said where it would be sent
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		s = Situation{Workflow: w, Graph: g, Now: c.Now()}
		runs, err := tx.Runs(ledger.RunFilter{Kind: ledger.Workflows, Namespace: w.Namespace, Name: w.Name})
		if err != nil {
			return err
		}
		var own []ledger.Run
		for _, run := range runs {
			if run.UID == string(w.UID) {
				own = append(own, run)
			} else {
				s.Orphans = true
			}
		}
		own, s.Attempt = Attempt(own, 0)
		if run := tabled(own); run != nil && g != nil && run.SpecHash == w.SpecHash() {
			rows, err := tx.TableRows(run.UID, run.Attempt)
			if err != nil {
				return err
			}
			g.Count(rows)
		}
		for _, run := range own {
			d, err := gatherDAG(tx, run)
			if err != nil {
				return err
			}
			if err = d.gatherAbort(tx, g); err != nil {
				return err
			}
			s.DAGs = append(s.DAGs, d)
			if err := gatherFailures(tx, &s, run); err != nil {
				return err
			}
			if err := gatherPushes(tx, &s, run); err != nil {
				return err
			}
			s.Unfetched = s.Unfetched || c.owesOutput(d)
		}
		if len(own) > 0 && len(w.Spec.Rules) > 0 {
			if s.Rules, err = tx.RuleStates(own[0].UID, own[0].Attempt); err != nil {
				return err
			}
		}
		if err := c.gatherRepeats(tx, &s); err != nil {
			return err
		}
		if len(own) > 0 {
			s.Keep, err = c.pools.KeepOf(tx, own[len(own)-1])
		}
		return err
	})
	if err != nil {
		return s, fmt.Errorf("gather: %w", err)
	}
	s.nameURLs()
	known := c.Memory.Of(w.Namespace + "/" + w.Name)
	if known.Kind.measured.uid == string(w.UID) { // it may have been begun for an older one of this name
		s.Measured = known.Kind.measured
	}
	if dag := s.newest(); dag != nil {
		s.Sought = known.Kind.sought == recovery.KeyOf(dag.Run)
	}
	s.Released = w.DeletionTimestamp != nil && known.Released == w.ResourceVersion
	c.believe(&s, known.Agreed == w.UID)
	s.Quota = c.QuotaOf(s.together(), s.demand)
	return s, c.gatherResult(ctx, &s)
}

// believe drops a status that was edited by hand, except for its conditions, which are set again anyway. For agreed see
// lifecycle.Whose.
func (c *Controller) believe(s *Situation, agreed bool) {
	w := s.Workflow
	key, newest := w.Namespace+"/"+w.Name, s.newest()
	// A DAG begins when the one before has ended. If an older ledger was put back, HTCondor knows that it has.
	open := newest != nil && !newest.Run.Confirmed && !newest.Run.Checked.Before(c.began)
	switch {
	case !s.lost() && !agreed:
		c.Memory.Change(key, func(r *reconciler.Record[remembered]) { r.Agreed = w.UID })
	case s.lost() && newest != nil && newest.Run.State != ledger.Intent && (agreed || c.SameLedger || open):
		c.Log.Warn().Str("workflow", key).Int32("attempt", w.Status.Attempt).
			Msg("the status tells of DAGs that there never were; the ledger's stand")
		s.Workflow = w.DeepCopy()
		s.Workflow.Status = v1alpha1.HTCWorkflowStatus{Phase: v1alpha1.PhasePending, Conditions: w.Status.Conditions}
	}
}

// Attempt returns those of a workflow's DAGs, given in order, that belong to an attempt, and its number; 0 is the
// newest.
func Attempt(runs []ledger.Run, wanted int) (dags []ledger.Run, number int) {
	for i, run := range runs {
		if i == 0 || begins(runs[i-1], run) {
			if i > 0 && number == wanted {
				return dags, number
			}
			number += 1 + run.Earlier
			dags = nil
		}
		dags = append(dags, run)
	}
	if wanted != 0 && wanted != number {
		return nil, 0
	}
	return dags, number
}

// begins reports whether a DAG is the first of another attempt than the one before it. After a refused one of the same
// spec only finally follows.
func begins(before, run ledger.Run) bool {
	sent := before.State == ledger.Submitted || before.State == ledger.Refused
	return run.SpecHash != before.SpecHash || run.Rerun != before.Rerun || !sent ||
		before.Stop == crosscheck.StopSuspended
}

func gatherDAG(tx *ledger.Tx, run ledger.Run) (d DAG, err error) {
	d.Run = run
	if run.State == ledger.Refused {
		return d, nil
	}
	if d.Steps, err = tx.NodeCounts(run.UID, run.Attempt); err != nil {
		return d, err
	}
	if d.Sequences, err = tx.SequenceCounts(run.UID, run.Attempt); err != nil {
		return d, err
	}
	if d.Repeats, err = tx.Repeats(run.UID, run.Attempt); err != nil {
		return d, err
	}
	if run.Cluster == 0 || run.State == ledger.Intent {
		return d, nil
	}
	job, err := tx.Proc(run.UID, run.Attempt, 0)
	if err != nil {
		return d, err
	}
	d.Job = &job
	if d.Settled, err = tx.Settled(run.UID, run.Attempt); err != nil {
		return d, err
	}
	if slices.ContainsFunc(d.Steps, func(s ledger.StepCounts) bool { return s.Held > 0 }) {
		d.Held, err = tx.Nodes(run.UID, run.Attempt, ledger.NodeFilter{State: ledger.NodeHeld, Limit: 1})
	}
	return d, err
}

// gatherAbort finds whether a node has failed in such a way that everything ends. That of finally ends nothing.
func (d *DAG) gatherAbort(tx *ledger.Tx, g *graph.Graph) error {
	for _, step := range d.Steps {
		if g == nil || step.Failed == 0 || step.Number >= len(g.Steps) {
			continue
		}
		by := g.Steps[step.Number]
		if len(by.AbortExitCodes) == 0 || by.Final {
			continue
		}
		is, err := tx.FailedWith(d.Run.UID, d.Run.Attempt, step.Number, by.AbortExitCodes)
		if err != nil {
			return err
		}
		if is {
			d.Aborted, d.Returns = true, by.AbortReturn
			return nil
		}
	}
	return nil
}

// gatherRepeats finds what is to be repeated. That depends on what has ended, so it is found once.
func (c *Controller) gatherRepeats(tx *ledger.Tx, s *Situation) (err error) {
	key := s.Workflow.Namespace + "/" + s.Workflow.Name
	known := c.Memory.Of(key).Kind.repeats
	if known.uid == string(s.Workflow.UID) && known.attempt == s.Attempt { // a status may be written later
		s.Repeat.spent = known.spent
	}
	if !s.mayRepeat() {
		return nil
	}
	if s.Repeat.waits = s.Unfetched; s.Repeat.waits {
		return nil
	}
	dag := s.newest().Run
	if known.uid != dag.UID || known.dag != dag.Attempt {
		known.uid, known.dag, known.attempt = dag.UID, dag.Attempt, s.Attempt
		if known.all, known.spent, err = s.repeatables(tx); err != nil {
			return err
		}
		c.Memory.Change(key, func(r *record) { r.Kind.repeats = known })
	}
	s.Repeat.all, s.Repeat.spent = known.all, known.spent
	return nil
}

// gatherFailures adds nodes of a DAG that have failed, up to as many as a status names.
func gatherFailures(tx *ledger.Tx, s *Situation, run ledger.Run) error {
	most := v1alpha1.MaxFailures - len(s.Failures)
	if most <= 0 || run.State != ledger.Submitted {
		return nil
	}
	failed, err := tx.Nodes(run.UID, run.Attempt, ledger.NodeFilter{State: ledger.NodeFailed, Limit: most})
	s.Failures = append(s.Failures, failed...)
	return err
}
