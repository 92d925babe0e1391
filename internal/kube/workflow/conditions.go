package workflow

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

const notEnded = "not every node has ended"

func (s Situation) conditions(set lifecycle.SetCondition, status *v1alpha1.HTCWorkflowStatus, v lifecycle.View) {
	s.submittedCondition(set, v)
	reason, message := s.news(status.Phase)
	suspended := status.Phase == v1alpha1.PhaseSuspended
	lifecycle.EndConditions(set, &status.Conditions, status.Phase, reason, message, notEnded, suspended)
	s.suspendedCondition(set, status)
	s.heldCondition(set, status)
	s.outputCondition(set, v)
	s.pushedCondition(set, status, v)
	switch {
	case s.Repeat.spent != "":
		set(v1alpha1.ConditionRepeatExhausted, metav1.ConditionTrue, v1alpha1.ConditionRepeatExhausted, s.Repeat.spent)
	case int(s.Workflow.Status.Attempt) != s.Attempt:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionRepeatExhausted)
	}
	switch {
	case v.BlockedBy(v1alpha1.ConditionInputsReady):
		set(v.Blocker.Condition, metav1.ConditionFalse, v.Blocker.Reason, v.Blocker.Message)
	case status.InputsDigest != "":
		set(
			v1alpha1.ConditionInputsReady,
			metav1.ConditionTrue,
			"Read",
			"the inputs have been read; their digest is "+status.InputsDigest,
		)
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionInputsReady) != nil:
		set(
			v1alpha1.ConditionInputsReady,
			metav1.ConditionTrue,
			"Read",
			"the table of itemsFrom, and the credentials, have been read",
		)
	}
	s.dependencies(set, status, v)
}

// dependencies sets the conditions about what a workflow needs: see lifecycle.
func (s Situation) dependencies(set lifecycle.SetCondition, status *v1alpha1.HTCWorkflowStatus, v lifecycle.View) {
	dag := s.newest()
	if dag == nil {
		v.Backend.Missing = 0
	}
	sent := dag != nil && dag.Run.State == ledger.Submitted
	v.Dependencies(set, status.Conditions, status.Phase.Terminal(), s.Workflow.DeletionTimestamp != nil, sent)
}

func (s Situation) submittedCondition(set lifecycle.SetCondition, v lifecycle.View) {
	dag := s.newest()
	is, reason, message := metav1.ConditionFalse, "Waiting", "waiting to be submitted"
	switch {
	case s.withheld():
		reason, message = "Suspended", "spec.suspend is true"
		if s.unadmitted() {
			reason, message = s.Quota.Reason, s.Quota.Message
		}
	case s.over() && s.refused() != nil:
		reason, message = s.refused().Run.Reason, s.refused().Run.Message
	case v.Blocker != nil && v.Blocker.Condition == v1alpha1.ConditionSubmitted:
		reason, message = v.Blocker.Reason, v.Blocker.Message
	case dag != nil && dag.Run.State == ledger.Submitted:
		is, reason, message = metav1.ConditionTrue, "Submitted", fmt.Sprintf(
			"DAG %d.0 is at schedd %s",
			dag.Run.Cluster,
			dag.Run.Schedd,
		)
	case v.Blocker != nil:
		reason, message = v.Blocker.Reason, v.Blocker.Message
	case Plan(s).Action == Recover:
		is, reason, message = metav1.ConditionUnknown, "AskingSchedd", "the schedd is asked whether it has this DAG already"
	}
	set(v1alpha1.ConditionSubmitted, is, reason, message)
}

// news returns the reason and message for the conditions and the Event when a phase is reached.
func (s Situation) news(phase v1alpha1.Phase) (reason, message string) {
	n := s.nodes()
	switch dag := s.newest(); phase {
	case v1alpha1.PhaseSucceeded:
		message = fmt.Sprintf("%s done", lifecycle.IsOrAre(int(n.Done), "node"))
		if s.returns() != nil {
			message += ", and one has ended the rest: abortReturn of its step is 0"
		}
		return "Succeeded", message
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		return s.failure(phase)
	case v1alpha1.PhaseHeld:
		if dag.heldByPool() {
			return crosscheck.ReasonPoolSuspended, fmt.Sprintf(
				"HTCPool %s is suspended: nodes that run go on, %s that waited held, and no others are sent",
				dag.Run.Pool,
				lifecycle.IsOrAre(int(n.Held), "node"),
			)
		}
		if dag.held() {
			return "Held", fmt.Sprintf("DAGMan's job %s is held: %s", dag.Job.JobID(), dag.Job.Message)
		}
		for _, d := range s.DAGs {
			if len(d.Held) > 0 {
				return "Held", lifecycle.HeldMessage(
					lifecycle.Plural(int(n.Held), "node"), s.nameOf(d.Held[0]), d.Held[0].Proc, "HTCWorkflow")
			}
		}
		return "", ""
	case v1alpha1.PhaseRunning:
		if s.awaitsOutput() {
			return lifecycle.AwaitsOutput(lifecycle.Plural(int(n.Done), "node"))
		}
		if n.Running == 0 {
			return "Running", fmt.Sprintf("%s done, and DAGMan sends the next", lifecycle.IsOrAre(int(n.Done), "node"))
		}
		return "Running", fmt.Sprintf("%s running", lifecycle.IsOrAre(int(n.Running), "node"))
	case v1alpha1.PhaseSuspended:
		if s.unadmitted() {
			return s.Quota.Reason, s.Quota.Message
		}
		return "Suspended", "spec.suspend is true: nothing is sent to HTCondor until it is false; then all is sent, as a new attempt if some had been sent before"
	}
	return "", ""
}

// failure says why an attempt has failed.
func (s Situation) failure(phase v1alpha1.Phase) (reason, message string) {
	if dag := s.refused(); dag != nil {
		return dag.Run.Reason, dag.Run.Message
	}
	reason = string(phase)
	for _, d := range s.DAGs {
		if d.Run.Stop == crosscheck.StopDeadline || d.Run.Stop == crosscheck.StopAborted {
			reason, message = d.Run.Stop, d.Run.Message+"; "
		}
	}
	if wanted := completions(s.Workflow); s.Graph != nil && wanted > s.succeeded() {
		message += fmt.Sprintf("%d of %s succeeded, and %d of at most %d were begun; ",
			s.succeeded(), lifecycle.Plural(wanted, "sequence"), s.total(), s.Workflow.Sequences())
	}
	n := s.nodes()
	message += fmt.Sprintf("%d of %s done, %d failed", n.Done, lifecycle.Plural(int(n.Total), "node"), n.Failed)
	if len(s.Failures) > 0 {
		f := s.describeFailure(s.Failures[0])
		message += fmt.Sprintf("; %s: %s", f.Node, f.Message)
	}
	return reason, message
}

func (s Situation) suspendedCondition(set lifecycle.SetCondition, status *v1alpha1.HTCWorkflowStatus) {
	is, reason, message := metav1.ConditionFalse, "NotSuspended", "spec.suspend is false"
	switch {
	case status.Phase == v1alpha1.PhaseSuspended:
		is = metav1.ConditionTrue
		reason, message = s.news(v1alpha1.PhaseSuspended)
	case s.Workflow.Spec.Suspend && s.over():
		reason, message = "Ended", "the jobs had ended before spec.suspend could stop them"
	case s.suspends() && !s.over():
		reason, message = lifecycle.ReasonStopping, "the jobs are being removed from HTCondor"
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSuspended) == nil:
		return
	}
	set(v1alpha1.ConditionSuspended, is, reason, message)
}

func (s Situation) heldCondition(set lifecycle.SetCondition, status *v1alpha1.HTCWorkflowStatus) {
	dag := s.newest()
	switch {
	case dag != nil && (dag.held() || s.nodes().Held > 0):
		reason, message := s.news(v1alpha1.PhaseHeld)
		set(v1alpha1.ConditionHeld, metav1.ConditionTrue, reason, message)
	case dag != nil && dag.Run.Paused() != "" && dag.waiting() > 0:
		reason, message := lifecycle.Paused(lifecycle.Agree(dag.waiting(), "node", "that waits", "that wait"), dag.Run)
		set(v1alpha1.ConditionHeld, metav1.ConditionTrue, reason, message)
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHeld) != nil:
		set(v1alpha1.ConditionHeld, metav1.ConditionFalse, "NotHeld", "no node is held")
	}
}

func (s Situation) outputCondition(set lifecycle.SetCondition, v lifecycle.View) {
	var dag *DAG // the newest that was sent
	for i := range s.DAGs {
		if s.DAGs[i].Run.State == ledger.Submitted {
			dag = &s.DAGs[i]
		}
	}
	if dag == nil && s.refused() != nil {
		lifecycle.NothingToFetch(set, s.Workflow.Status.Conditions)
	}
	if dag == nil || dag.Run.OutputDir == "" {
		return
	}
	is, reason, message := metav1.ConditionTrue, "Fetched", "the output of all nodes that ended is here"
	switch {
	case s.Unfetched && v.Unfetched != nil:
		is, reason, message = metav1.ConditionFalse, v.Unfetched.Reason, v.Unfetched.Message
	case !dag.settled():
		is, reason, message = metav1.ConditionFalse, "NotEnded", notEnded
	case s.Unfetched:
		is, reason, message = metav1.ConditionFalse, "Fetching", "the output of the nodes is being fetched"
	case dag.Job.Fetched == ledger.GivenUp:
		is, reason, message = metav1.ConditionFalse, lifecycle.ReasonGivenUp, "the output could not be fetched: DAGMan's job has left the queue"
	}
	set(v1alpha1.ConditionOutputFetched, is, reason, message)
}

// happened returns what happened between two statuses: one event for each kind of change, however many nodes changed.
// The event that a DAG was sent is created where its submission is recorded.
func happened(before, after v1alpha1.HTCWorkflowStatus, s Situation) []lifecycle.Event {
	var events []lifecycle.Event
	tell := func(warning bool, reason, message string) {
		events = append(events, lifecycle.Event{Warning: warning, Reason: reason, Message: message})
	}
	again := after.Attempt > before.Attempt && before.Attempt > 0
	if again {
		tell(false, "NextAttempt", fmt.Sprintf("attempt %d begins", after.Attempt))
	}
	events = append(events, lifecycle.FreshNews(before.Conditions, after.Conditions)...)
	events = append(events, lifecycle.MatchableNews(before.Conditions, after.Conditions)...)
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionRepeatExhausted)
	if is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionRepeatExhausted); is != nil &&
		(was == nil || was.Message != is.Message) {
		tell(true, is.Reason, is.Message)
	}
	if before.Nodes.Failed == 0 && after.Nodes.Failed > 0 && !after.Phase.Terminal() && len(s.Failures) > 0 {
		f := s.describeFailure(s.Failures[0])
		tell(
			true,
			"NodeFailed",
			fmt.Sprintf(
				"%d of %s failed so far; %s: %s",
				after.Nodes.Failed,
				lifecycle.Plural(int(after.Nodes.Total), "node"),
				f.Node,
				f.Message,
			),
		)
	}
	if before.Phase == v1alpha1.PhaseSuspended && after.Phase != v1alpha1.PhaseSuspended && s.Quota != nil &&
		!s.waits() {
		tell(false, "Admitted", "there is quota: the jobs are sent")
	}
	if before.Phase == after.Phase && !again {
		return events
	}
	if reason, message := s.news(after.Phase); reason != "" {
		bad := after.Phase == v1alpha1.PhaseFailed || after.Phase == v1alpha1.PhaseRemoved ||
			after.Phase == v1alpha1.PhaseHeld && reason != crosscheck.ReasonPoolSuspended
		tell(bad, reason, message)
	}
	return events
}
