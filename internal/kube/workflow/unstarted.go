package workflow

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/matching"
)

// reasonNotStarted says that the schedd does not start DAGMan.
const reasonNotStarted = "DAGManNotStarted"

// waits reports whether DAGMan's own job is to be started.
func (d *DAG) waits() bool {
	return d != nil && d.Run.State == ledger.Submitted && d.Job != nil && d.Job.Status == ledger.StatusOpen &&
		d.Job.JobStatus == int(condor.Idle)
}

// unstarted returns what can keep DAGMan from its start, nil if it has started or may do so at any moment.
func (s Situation) unstarted(now time.Time) *matching.Verdict {
	dag := s.newest()
	if !dag.waits() || now.Sub(dag.Run.Submitted) < schedd.StartsWithin {
		return nil
	}
	return &matching.Verdict{Is: metav1.ConditionFalse, Reason: reasonNotStarted, Message: fmt.Sprintf(
		"DAGMan's job %s is idle at %s, and starts by itself when there is room: %s",
		dag.Job.JobID(),
		dag.Run.Schedd,
		schedd.SchedulerLimits,
	)}
}

// matchable returns what stands in the condition Matchable: what keeps DAGMan from its start, or its nodes from a slot.
// The first is gone once DAGMan runs.
func (s Situation) matchable(
	status *v1alpha1.HTCWorkflowStatus, v lifecycle.View,
) (verdict *matching.Verdict, waits bool) {
	if late := s.unstarted(v.Now); late != nil {
		return late, !status.Phase.Terminal()
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionMatchable); c != nil &&
		c.Reason == reasonNotStarted {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionMatchable)
	}
	tooLong := func(f v1alpha1.NodeFailure) bool { return f.Reason == condor.ReasonIdleTooLong }
	return v.Match, status.Nodes.Idle > 0 && !status.Phase.Terminal() || slices.ContainsFunc(status.Failures, tooLong)
}
