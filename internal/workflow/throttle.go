package workflow

import (
	"context"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/graph"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/pool"
	"htc.cern.ch/htcd/internal/schedd"
)

// throttled is what DAGMan was told last. It is not in the ledger: after a restart DAGMan is told again.
type throttled struct {
	dag, jobs int
	at        time.Time
	twice     bool
}

// betweenTellings is after how long DAGMan is told again: one that just began may have read the old number before, and written it after,
// it was told the first time.
const betweenTellings = 20 * time.Second

// maxJobs returns how many nodes of a DAG with these steps may be in the queue, 0 for any number. atWork is how many sequences may be at work
// at a time: DAGMan sends depth first, so as many jobs as so many sequences have side by side belong to about so many sequences.
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

// atWork returns how many sequences may be at work at a time: what the rule that acted last has made of it, else what the spec says; 0: all.
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

// jobsNow returns how many nodes of the newest DAG may be in the queue now, if a rule has changed that.
func (s Situation) jobsNow() (n int, changed bool) {
	dag := s.newest()
	if s.Graph == nil || dag.Run.State != ledger.Submitted || dag.Run.Confirmed || s.changed() || s.level(*dag) < 0 || s.changedByRule() == 0 {
		return 0, false
	}
	var steps []int
	for _, step := range dag.Steps {
		steps = append(steps, step.Number)
	}
	return maxJobs(s.Workflow, s.Graph, steps, s.atWork()), true
}

// untold reports whether DAGMan is to be told.
func (s Situation) untold() bool {
	n, changed := s.jobsNow()
	t := s.Throttled
	return changed && (t.dag != s.newest().Run.Attempt || t.jobs != n || !t.twice && !s.Now.Before(t.at.Add(betweenTellings)))
}

// tellAgain returns when DAGMan is to be told again, the zero time if it need not.
func (s Situation) tellAgain() time.Time {
	if _, changed := s.jobsNow(); !changed || s.Throttled.twice {
		return time.Time{}
	}
	return s.Throttled.at.Add(betweenTellings)
}

// throttle tells DAGMan how many nodes may be in the queue.
func (c *Controller) throttle(ctx context.Context, s Situation) error {
	run := s.newest().Run
	n, _ := s.jobsNow()
	t := backend.TargetOf(run)
	id, err := c.Credentials.Identity(ctx, t)
	if err != nil {
		return err
	}
	most := leastOpen(n, c.rules(pool.Pool{Name: run.Pool}).Limits)
	if err := c.Schedd.SetMaxJobs(ctx, id, schedd.Tag{UID: run.UID, Attempt: run.Attempt}, run.Cluster, most); err != nil {
		return fmt.Errorf("tell DAGMan %d.0 that %d jobs may be in the queue: %w", run.Cluster, most, err)
	}
	c.memory.change(keyOf(run), func(r *remembered) {
		again := r.throttled.dag == run.Attempt && r.throttled.jobs == n
		r.throttled = throttled{dag: run.Attempt, jobs: n, at: c.Now(), twice: again}
	})
	return nil
}
