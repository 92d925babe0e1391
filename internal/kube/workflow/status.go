package workflow

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// phase sums up the situation in one word, by the first rule that fits.
func (s Situation) phase() v1alpha1.Phase {
	dag := s.newest()
	n := s.nodes()
	switch {
	case s.lost():
		return s.Workflow.Status.Phase
	case s.withheld(), dag != nil && dag.settled() && !s.over() && s.waits():
		return v1alpha1.PhaseSuspended
	case dag == nil:
		return v1alpha1.PhasePending
	case s.awaitsOutput():
		return v1alpha1.PhaseRunning
	case s.over() && s.succeededAll():
		return v1alpha1.PhaseSucceeded
	case s.over() && dag.removed():
		return v1alpha1.PhaseRemoved
	case s.over():
		return v1alpha1.PhaseFailed
	case dag.Run.State != ledger.Submitted:
		return v1alpha1.PhaseSubmitting
	case n.Running > 0:
		return v1alpha1.PhaseRunning
	case n.Held > 0 || dag.held():
		return v1alpha1.PhaseHeld
	case n.Idle == 0 && n.Done+n.Failed > 0 && dag.runs(): // between two nodes, which may be short
		return v1alpha1.PhaseRunning
	}
	return v1alpha1.PhaseIdle
}

// runs reports whether DAGMan's own job does.
func (d DAG) runs() bool {
	return d.Job != nil && d.Job.Status == ledger.StatusOpen && d.Job.JobStatus == int(condor.Running)
}

// held reports whether DAGMan's own job is on hold.
func (d DAG) held() bool {
	return d.Job != nil && d.Job.Status == ledger.StatusOpen && d.Job.JobStatus == int(condor.Held)
}

// heldByPool reports whether it is on hold because its pool is suspended.
func (d DAG) heldByPool() bool { return d.held() && d.Job.Reason == crosscheck.ReasonPoolSuspended }

// succeededAll reports whether an attempt that is over has succeeded: as many sequences as are wanted, and each step
// that runs once for all, finally included; or finally alone, if a node has ended everything and that is a success.
func (s Situation) succeededAll() bool { return s.succeededIn(true) }

// succeededBefore is succeededAll without finally.
func (s Situation) succeededBefore() bool { return s.succeededIn(false) }

func (s Situation) succeededIn(finally bool) bool {
	if s.Graph == nil || s.refused() != nil {
		return false
	}
	returns := s.returns()
	if returns == nil && s.lastOfSequences() >= 0 && s.succeeded() < s.wanted() || returns != nil && *returns != 0 {
		return false
	}
	totals := s.Graph.Totals(s.total())
	done := s.steps()
	for i, step := range s.Graph.Steps {
		if step.All && (finally && step.Final || returns == nil && !step.Final) &&
			done[i].Succeeded+min(done[i].Failed, step.MayFail()) < max(totals[i], 1) {
			return false
		}
	}
	return true
}

// steps counts the nodes of each step of the present spec.
func (s Situation) steps() map[int]ledger.NodeCounts {
	all := map[int]ledger.NodeCounts{}
	for _, d := range s.DAGs {
		for _, step := range d.Steps {
			all[step.Number] = all[step.Number].Plus(step.NodeCounts)
		}
	}
	return all
}

// nodes counts those of all DAGs.
func (s Situation) nodes() (sum v1alpha1.NodeCounts) {
	for _, d := range s.DAGs {
		for _, step := range d.Steps {
			add(&sum, counted(step.NodeCounts))
		}
	}
	return sum
}

func counted(n ledger.NodeCounts) v1alpha1.NodeCounts {
	return v1alpha1.NodeCounts{
		Total: int32(
			n.Total(),
		), Done: int32(n.Succeeded), Running: int32(n.Running), Idle: int32(n.Idle), Held: int32(n.Held),
		Failed: int32(n.Failed), Futile: int32(n.Futile),
	}
}

func add(sum *v1alpha1.NodeCounts, n v1alpha1.NodeCounts) {
	sum.Total += n.Total
	sum.Done += n.Done
	sum.Running += n.Running
	sum.Idle += n.Idle
	sum.Held += n.Held
	sum.Failed += n.Failed
	sum.Futile += n.Futile
}

// newStatus returns the whole status of a workflow. It is pure; conditions keep the time of their last change.
func newStatus(s Situation, v lifecycle.View) v1alpha1.HTCWorkflowStatus {
	status := v1alpha1.HTCWorkflowStatus{
		Phase:              s.phase(),
		ObservedGeneration: s.Workflow.Generation,
		Attempt:            s.Workflow.Status.Attempt,
		Conditions:         slices.Clone(s.Workflow.Status.Conditions),
	}
	set := lifecycle.Sets(&status.Conditions, &status.ObservedGeneration, v.Now)
	if s.Workflow.DeletionTimestamp != nil { // it removes the nodes, which is not a failure
		status = *s.Workflow.Status.DeepCopy()
		s.dependencies(set, &status, v)
		status.Reason, status.Message = lifecycle.Summary(
			status.Phase, status.Conditions, lifecycle.Far(status.Reason, status.Message))
		return status
	}
	if s.lost() { // what the status says is all that is known
		status = *s.Workflow.Status.DeepCopy()
		if v.Blocker != nil {
			kind := cmp.Or(v.Blocker.Condition, v1alpha1.ConditionSubmitted)
			set(kind, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
			status.Reason, status.Message = lifecycle.Summary(
				status.Phase, status.Conditions, lifecycle.Far(status.Reason, status.Message))
		}
		return status
	}
	s.describeSteps(&status)
	s.describeDAGs(&status)
	s.describeMetrics(&status)
	s.describeSequences(&status)
	s.conditions(set, &status, v)
	lifecycle.FreshCondition(set, &status.Conditions, active(status), v.Fresh)
	verdict, waits := s.matchable(&status, v)
	lifecycle.MatchableCondition(set, &status.Conditions, waits, verdict)
	switch status.Phase {
	case v1alpha1.PhaseSucceeded:
		status.ExitCode, status.Result = new(int32(0)), s.Result
	case v1alpha1.PhaseFailed:
		status.ExitCode = cmp.Or(status.ExitCode, status.AsJobs().FailedWith())
	}
	_, far := s.news(status.Phase)
	status.Reason, status.Message = lifecycle.Summary(status.Phase, status.Conditions, far)
	return status
}

// describeSteps counts the nodes, those that are not in HTCondor yet included. What can no longer be sent is futile.
func (s Situation) describeSteps(status *v1alpha1.HTCWorkflowStatus) {
	if s.Graph == nil || len(s.DAGs) > 0 && s.changed() {
		for _, d := range s.DAGs {
			for _, step := range d.Steps { // several DAGs may have it
				is := func(other v1alpha1.StepStatus) bool { return string(other.Name) == step.Name }
				at := slices.IndexFunc(status.Steps, is)
				if at < 0 {
					at = len(status.Steps)
					status.Steps = append(status.Steps, v1alpha1.StepStatus{Name: v1alpha1.StepName(step.Name)})
				}
				add(&status.Steps[at].NodeCounts, counted(step.NodeCounts))
			}
		}
		status.Nodes = s.nodes()
		return
	}
	totals, done, over := s.Graph.Totals(s.total()), s.steps(), s.over()
	for i, step := range s.Graph.Steps {
		n := counted(done[i])
		n.Total = max(n.Total, int32(totals[i]))
		if over {
			n.Futile = n.Total - n.Done - n.Failed
		}
		status.Steps = append(status.Steps, v1alpha1.StepStatus{Name: step.Name, NodeCounts: n})
		add(&status.Nodes, n)
	}
}

// describeDAGs says which DAGs there are, and what of them has failed.
func (s Situation) describeDAGs(status *v1alpha1.HTCWorkflowStatus) {
	dag := s.newest()
	if dag == nil {
		return
	}
	run := dag.Run
	status.Attempt, status.SpecHash, status.Rerun, status.ItemsDigest = int32(
		s.Attempt,
	), run.SpecHash, run.Rerun, run.ItemsDigest
	// A client that waits for a condition of the changed spec must not see the end of the previous attempt instead.
	if s.changed() && !s.withheld() {
		status.ObservedGeneration = min(
			max(run.Generation, s.Workflow.Status.ObservedGeneration),
			s.Workflow.Generation-1,
		)
	}
	for _, d := range s.DAGs {
		status.InputsDigest = cmp.Or(d.Run.InputsDigest, status.InputsDigest)
		if d.Run.Cluster > 0 {
			status.JobID = append(status.JobID, fmt.Sprintf("%d.0", d.Run.Cluster))
		}
		status.Schedd = cmp.Or(d.Run.Schedd, status.Schedd)
		if !d.Run.Checked.IsZero() {
			status.LastChecked = lifecycle.TimeOrNil(d.Run.Checked)
		}
	}
	status.StartTime = lifecycle.TimeOrNil(s.DAGs[0].Run.Submitted)
	if s.over() {
		status.CompletionTime = lifecycle.TimeOrNil(run.Ended)
		if code := s.returns(); code != nil && (*code == 0) == s.succeededAll() {
			status.ExitCode = code
		}
	}
	for _, n := range s.Failures {
		status.Failures = append(status.Failures, s.describeFailure(n))
	}
}

func (s Situation) describeFailure(n ledger.Node) v1alpha1.NodeFailure {
	f := v1alpha1.NodeFailure{Failure: v1alpha1.Failure{
		ExitCode: lifecycle.Int32OrNil(n.ExitCode), Signal: lifecycle.Int32OrNil(n.Signal), Reason: n.Reason,
		Message: lifecycle.Shorten(n.Message, lifecycle.MaxNote), Stderr: n.Stderr,
	}}
	if n.Cluster > 0 {
		f.JobID = n.JobID()
	}
	if n.Sequence != ledger.AllSequences {
		f.Sequence = new(int32(n.Sequence))
	}
	f.Node = s.nameOf(n)
	return f
}

// nameOf is what a node is called; just as its step if the spec has no such step any more, or at another place.
func (s Situation) nameOf(n ledger.Node) string {
	if !s.hasStepOf(n) {
		return n.StepName
	}
	return s.Graph.Name(graph.Node{Step: n.Step, Sequence: n.Sequence, Index: n.Item, Name: n.Label})
}

// hasStepOf reports whether the spec has the step of a node at its place.
func (s Situation) hasStepOf(n ledger.Node) bool {
	return s.Graph != nil && n.Step < len(s.Graph.Steps) && string(s.Graph.Steps[n.Step].Name) == n.StepName
}

func (s Situation) describeSequences(status *v1alpha1.HTCWorkflowStatus) {
	n := v1alpha1.SequenceCounts{Total: int32(s.total())}
	if dag := s.newest(); dag != nil && s.Graph != nil && !s.changed() {
		n.Succeeded = int32(s.succeeded())
		for _, d := range s.DAGs {
			n.Failed += int32(d.Sequences.Failed)
		}
		switch {
		case s.over():
			n.Failed = n.Total - n.Succeeded
		case dag.Run.State == ledger.Submitted:
			n.Active = n.Total - n.Succeeded - n.Failed
		}
		if s.lastOfSequences() < 0 {
			n = v1alpha1.SequenceCounts{Total: n.Total}
		}
	}
	status.Sequences = n
}
