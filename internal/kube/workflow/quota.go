package workflow

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

// A quota outside of htcd admits a workflow as a whole, for as many jobs as may be in HTCondor at a time: what has
// begun can then end, and no two workflows wait in their middle for what the other one has. DAGMan, which sends the
// nodes, is bounded by what was admitted.

// suspends reports whether what has been sent is to be removed from HTCondor: by spec.suspend, or for want of quota.
func (s Situation) suspends() bool { return s.Workflow.Spec.Suspend || s.Quota != nil && s.Quota.Stops }

// waits reports whether nothing may be sent: by spec.suspend, or for want of quota.
func (s Situation) waits() bool { return s.Workflow.Spec.Suspend || s.Quota != nil && s.Quota.Waits }

// unadmitted reports whether it is the quota, and not spec.suspend, that a workflow waits for.
func (s Situation) unadmitted() bool {
	return !s.Workflow.Spec.Suspend && s.Quota != nil && s.Quota.Waits
}

// together returns what a quota knows of a workflow: each of its jobs asks for as much as any step's does.
func (s Situation) together() *v1alpha1.HTCJob {
	w := s.Workflow
	job := asJob(w)
	job.Spec.Suspend, job.Spec.Resources = w.Spec.Suspend, &v1alpha1.Resources{}
	add := func(step v1alpha1.StepJob) {
		most, asked := job.Spec.Resources, lifecycle.Takes(step.Resources, step.Nodes)
		most.CPUs = larger(most.CPUs, asked.CPUs)
		most.Memory = larger(most.Memory, asked.Memory)
		most.GPUs = larger(most.GPUs, asked.GPUs)
	}
	for _, step := range w.Spec.Steps {
		add(step.Job)
	}
	if w.Spec.Finally != nil {
		add(w.Spec.Finally.Job)
	}
	return job
}

func larger(a, b *resource.Quantity) *resource.Quantity {
	if a == nil || b != nil && a.Cmp(*b) < 0 {
		return b
	}
	return a
}

// demand returns what the newest attempt needs of a quota, or the next one if that is due.
func (s Situation) demand() lifecycle.Demand {
	w, dag := s.Workflow, s.newest()
	d := lifecycle.Demand{Of: w.SpecHash() + " " + w.Rerun(), Jobs: s.widest()}
	d.Left = d.Jobs
	if s.lost() {
		d.Over = w.Status.Phase.Terminal() && !s.dueAfterLoss()
		d.Alive = !w.Status.Phase.Terminal()
		d.Succeeded, d.Told = w.Status.Phase == v1alpha1.PhaseSucceeded, d.Over
		return d
	}
	if dag == nil {
		return d
	}
	d.Alive = !dag.settled()
	d.Sent = d.Alive && dag.Run.State == ledger.Submitted
	if d.Over = s.over(); d.Over {
		d.Succeeded = s.succeededAll()
		d.Told = w.Status.Phase.Terminal() && int(w.Status.Attempt) == s.Attempt
	}
	if s.due() && s.changed() {
		return d
	}
	if first := s.DAGs[0].Run; first.SpecHash != "" {
		d.Of = first.SpecHash + " " + first.Rerun
	}
	if !s.due() && dag.Run.Stop != crosscheck.StopSuspended && !s.changed() && s.Graph != nil && s.foreseen() &&
		!repeats(w) && completions(w) == 0 {
		d.Left = s.remaining()
	}
	return d
}

// widest returns how many jobs of a workflow may be in HTCondor at a time, as far as its spec tells: those of its
// widest level, or spec.throttle.maxJobs. That does not change while it runs.
func (s Situation) widest() int {
	if s.Graph == nil {
		return 1
	}
	most, w := 1, s.Workflow
	totals := s.Graph.Totals(begunAtFirst(w, w.Sequences()))
	atWork := 0
	if spec := w.Spec.Sequences; spec != nil && !resizes(w) {
		atWork = valueOf(spec.MaxConcurrent)
	}
	for _, steps := range s.Graph.Levels {
		jobs, throttle := 0, maxJobs(w, s.Graph, steps, atWork)
		for _, step := range steps {
			jobs += totals[step]
		}
		if throttle > 0 && (jobs > throttle || !s.foreseen()) {
			jobs = throttle
		}
		most = max(most, jobs)
	}
	return most
}

// foreseen reports whether the spec alone tells how many nodes each step has.
func (s Situation) foreseen() bool {
	spec := s.Workflow.Spec
	return !(spec.Sequences != nil && spec.Sequences.ItemsFrom != nil ||
		spec.Graph != nil && len(spec.Graph.NodesFrom) > 0 ||
		slices.ContainsFunc(spec.Steps, func(step v1alpha1.Step) bool {
			return step.ForEach != nil &&
				step.ForEach.ItemsFrom != nil
		}))
}

// remaining returns how many nodes have not ended, and may still run, if none is repeated.
func (s Situation) remaining() (left int) {
	ended := s.steps()
	for i, total := range s.Graph.Totals(s.total()) {
		left += max(0, total-ended[i].Succeeded-ended[i].Failed-ended[i].Futile)
	}
	return left
}
