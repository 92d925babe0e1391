package kube

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

const jobHeld = int(schedd.Held)

// view is what a status needs beside the situation: what is about to be done, what is in the way, and whether the schedd answers.
type view struct {
	decision decision
	trouble  trouble
	stuck    bool // trouble is set

	asked, down             bool
	downReason, downMessage string

	now time.Time
}

// newStatus is the whole status of an HTCJob. It is pure; conditions keep the time of their last change.
func newStatus(s situation, v view) v1alpha1.HTCJobStatus {
	status := v1alpha1.HTCJobStatus{
		Phase:              v1alpha1.PhasePending,
		ObservedGeneration: s.job.Generation,
		Attempt:            s.job.Status.Attempt,
	}
	for _, condition := range s.job.Status.Conditions {
		status.Conditions = append(status.Conditions, *condition.DeepCopy())
	}
	if s.run != nil {
		describeRun(&status, s)
	}
	status.Phase = phase(s)
	forgotten := s.run == nil && s.job.Status.Attempt > 0
	if forgotten {
		status = *s.job.Status.DeepCopy()
	}
	set := func(kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: shorten(message, maxConditionMessage),
			ObservedGeneration: s.job.Generation, LastTransitionTime: metav1.NewTime(seconds(v.now)),
		})
	}
	// Of a run that the ledger has lost, or has just let go, stands what was said before until HTCondor has been asked.
	if !forgotten {
		submittedCondition(set, s, v)
		endConditions(set, s, status.Phase)
		heldCondition(set, &status, s)
	}
	if v.stuck && v.trouble.condition == v1alpha1.ConditionCredentials {
		set(v1alpha1.ConditionCredentials, metav1.ConditionFalse, v.trouble.reason, v.trouble.message)
	} else if s.run != nil && s.run.State == ledger.Submitted {
		set(v1alpha1.ConditionCredentials, metav1.ConditionTrue, "TicketValid", "there is a ticket to submit with")
	}
	switch {
	case status.Phase.Terminal() && s.job.DeletionTimestamp == nil && meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBackendReachable) != nil:
		// An ended HTCJob no longer depends on the schedd; a later outage must not rewrite it.
	case v.asked && v.down:
		set(v1alpha1.ConditionBackendReachable, metav1.ConditionFalse, v.downReason, v.downMessage)
	case v.asked:
		set(v1alpha1.ConditionBackendReachable, metav1.ConditionTrue, v.downReason, v.downMessage)
	}
	if v.stuck && s.job.DeletionTimestamp != nil && v.trouble.condition == v1alpha1.ConditionBackendReachable {
		set(v.trouble.condition, metav1.ConditionFalse, v.trouble.reason, v.trouble.message) // it names the way out
	}
	return status
}

// maxConditionMessage keeps conditions far under the API's own limit of 32,768 bytes.
const maxConditionMessage = 4096

type setCondition func(kind string, is metav1.ConditionStatus, reason, message string)

// describeRun fills in everything that comes from the newest run.
func describeRun(status *v1alpha1.HTCJobStatus, s situation) {
	run := s.run
	status.Attempt = int32(run.Attempt)
	status.ObservedGeneration = run.Generation
	status.LastChecked = timeOrNil(run.Checked)
	switch run.State {
	case ledger.Intent:
		status.Active = int32(run.Procs)
	case ledger.Refused:
		status.Failed = int32(run.Procs)
		status.CompletionTime = timeOrNil(run.Ended)
	case ledger.Submitted:
		status.Active, status.Succeeded, status.Failed = int32(s.counts.Active), int32(s.counts.Succeeded), int32(s.counts.Failed)
		status.Idle, status.Running, status.Held = int32(s.counts.Idle), int32(s.counts.Running), int32(s.counts.Held)
		status.JobID = v1alpha1.JobIDs(run.Cluster, run.Procs)
		status.ClusterID, status.Schedd = int32(run.Cluster), run.Schedd
		status.StartTime = timeOrNil(run.Submitted)
		status.CompletionTime = timeOrNil(run.Ended)
	}
	for _, p := range s.failures {
		status.Failures = append(status.Failures, v1alpha1.Failure{
			JobID: p.JobID(), ExitCode: int32OrNil(p.ExitCode), Signal: int32OrNil(p.Signal),
			Reason: p.Reason, Message: shorten(p.Message, maxNote),
		})
	}
}

// phase puts it into one word, by the first rule that fits.
func phase(s situation) v1alpha1.Phase {
	run, n := s.run, s.counts
	switch {
	case run == nil:
		return v1alpha1.PhasePending
	case run.State == ledger.Refused:
		return v1alpha1.PhaseFailed
	case run.State != ledger.Submitted:
		return v1alpha1.PhaseSubmitting
	case n.Running > 0:
		return v1alpha1.PhaseRunning
	case n.Held > 0:
		return v1alpha1.PhaseHeld
	case n.Active > 0:
		return v1alpha1.PhaseIdle
	case n.Failed == 0:
		return v1alpha1.PhaseSucceeded
	case allRemoved(s):
		return v1alpha1.PhaseRemoved
	}
	return v1alpha1.PhaseFailed
}

// allRemoved tells whether nothing failed by itself, as far as the listed failures show.
func allRemoved(s situation) bool {
	for _, p := range s.failures {
		if p.Reason != reasonRemoved {
			return false
		}
	}
	return len(s.failures) > 0
}

func submittedCondition(set setCondition, s situation, v view) {
	switch run := s.run; {
	// The run before has ended, and the changed spec waits.
	case v.stuck && v.trouble.reason == reasonNamespaceLimit:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, v.trouble.reason, v.trouble.message)
	case run != nil && run.State == ledger.Submitted:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionTrue, "Submitted",
			fmt.Sprintf("cluster %d with %s is at schedd %s", run.Cluster, plural(run.Procs, "job"), run.Schedd))
	case run != nil && run.State == ledger.Refused:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, run.Reason, run.Message)
	case v.stuck:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, v.trouble.reason, v.trouble.message)
	case v.decision.action == actRecover:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionUnknown, "AskingSchedd", "the schedd is asked whether it has this attempt already")
	default:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, "Waiting", "waiting to be submitted")
	}
}

func endConditions(set setCondition, s situation, phase v1alpha1.Phase) {
	reason, message := phaseNews(s, phase)
	switch phase {
	case v1alpha1.PhaseSucceeded:
		set(v1alpha1.ConditionComplete, metav1.ConditionTrue, reason, message)
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, reason, message)
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reason, message)
		set(v1alpha1.ConditionFailed, metav1.ConditionTrue, reason, message)
	default:
		set(v1alpha1.ConditionComplete, metav1.ConditionFalse, "NotEnded", "not every job has ended")
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, "NotEnded", "not every job has ended")
	}
}

func heldCondition(set setCondition, status *v1alpha1.HTCJobStatus, s situation) {
	switch {
	case s.held != nil:
		set(v1alpha1.ConditionHeld, metav1.ConditionTrue, "Held", fmt.Sprintf("%s held; %s: %s. Mend the cause and condor_release it, or delete the HTCJob",
			plural(s.counts.Held, "job"), s.held.JobID(), s.held.Message))
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHeld) != nil:
		set(v1alpha1.ConditionHeld, metav1.ConditionFalse, "NotHeld", "no job is held")
	}
}

// phaseNews is the reason and message that stand in the condition and in the Event when a phase is reached.
func phaseNews(s situation, phase v1alpha1.Phase) (reason, message string) {
	n := s.counts
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return "Succeeded", fmt.Sprintf("%s ended with return code 0", plural(n.Succeeded, "job"))
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		if s.run.State == ledger.Refused {
			return s.run.Reason, s.run.Message
		}
		message = fmt.Sprintf("%d of %s failed", n.Failed, plural(n.Failed+n.Succeeded, "job"))
		if len(s.failures) > 0 {
			message += fmt.Sprintf("; %s: %s", s.failures[0].JobID(), s.failures[0].Message)
		}
		return string(phase), message
	case v1alpha1.PhaseHeld:
		if s.held != nil {
			return "Held", fmt.Sprintf("%s: %s", s.held.JobID(), s.held.Message)
		}
	case v1alpha1.PhaseRunning:
		return "Running", fmt.Sprintf("%s running", plural(n.Running, "job"))
	}
	return "", ""
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(seconds(t).Local()))
}

func int32OrNil(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}
