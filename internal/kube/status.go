package kube

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

const jobHeld = int(schedd.Held)

// view is what a status needs beside the situation: what is about to be done, what is in the way, and whether the schedd answers.
type view struct {
	decision decision
	blocker  blocker
	stuck    bool // blocker is set

	secret    backend.Proof // of the Secret that it is sent with
	unfetched *blocker      // why output is not fetched
	logs      logsView

	backend backend.Reachability

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
	kept := forgotten || toldBeforeDeletion(s)
	if kept {
		status = *s.job.Status.DeepCopy()
	}
	set := func(kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: shorten(message, maxConditionMessage),
			ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(seconds(v.now)),
		})
	}
	// Of a run that the ledger has lost, or has just let go, stands what was said before until HTCondor has been asked.
	if !kept {
		submittedCondition(set, s, v)
		endConditions(set, s, status.Phase)
		progressConditions(set, &status, s)
		heldCondition(set, &status, s)
		suspendedCondition(set, &status, s)
		outputCondition(set, s, v)
		logsCondition(set, &status, s, v.logs)
	}
	switch {
	case v.stuck && v.blocker.condition == v1alpha1.ConditionCredentials:
		set(v1alpha1.ConditionCredentials, metav1.ConditionFalse, v.blocker.reason, v.blocker.message)
	case v.secret.Err != nil && !status.Phase.Terminal():
		set(v1alpha1.ConditionCredentials, metav1.ConditionFalse, v.secret.Err.Reason, v.secret.Err.Message)
	case !v.secret.Known && !status.Phase.Terminal() && meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCredentials) != nil:
		// After a restart what was said stands until the Secret was looked at.
	case v.secret.Err != nil:
	// Where the schedd, or a full volume, is in the way next, what was said of the Secret no longer holds.
	case s.run != nil && s.run.State == ledger.Submitted, meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionCredentials) && !status.Phase.Terminal():
		set(v1alpha1.ConditionCredentials, metav1.ConditionTrue, "TicketValid", "there is a ticket, or a token, to submit with")
	}
	switch {
	case status.Phase.Terminal() && s.job.DeletionTimestamp == nil && meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBackendReachable) != nil:
		// An ended HTCJob no longer depends on the schedd; a later outage must not rewrite it.
	case v.backend.Asked && v.backend.Down:
		set(v1alpha1.ConditionBackendReachable, metav1.ConditionFalse, v.backend.Reason, v.backend.Message)
	case v.backend.Asked:
		set(v1alpha1.ConditionBackendReachable, metav1.ConditionTrue, v.backend.Reason, v.backend.Message)
	}
	if v.stuck && s.job.DeletionTimestamp != nil && v.blocker.condition == v1alpha1.ConditionBackendReachable {
		set(v.blocker.condition, metav1.ConditionFalse, v.blocker.reason, v.blocker.message) // it names the way out
	}
	status.Reason = reasonOf(status)
	return status
}

// reasonOf is the one reason of a status that whoever reads a list of HTCJobs wants to know.
func reasonOf(status v1alpha1.HTCJobStatus) string {
	of := func(kind string, as ...metav1.ConditionStatus) string {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c == nil || !slices.Contains(as, c.Status) {
			return ""
		}
		return c.Reason
	}
	if status.Phase.Terminal() {
		return of(v1alpha1.ConditionStalled, metav1.ConditionTrue)
	}
	stopping := of(v1alpha1.ConditionSuspended, metav1.ConditionFalse)
	if stopping != reasonStopping {
		stopping = ""
	}
	return cmp.Or(
		of(v1alpha1.ConditionSuspended, metav1.ConditionTrue), stopping,
		of(v1alpha1.ConditionCredentials, metav1.ConditionFalse),
		of(v1alpha1.ConditionBackendReachable, metav1.ConditionFalse),
		of(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, metav1.ConditionUnknown),
		of(v1alpha1.ConditionHeld, metav1.ConditionTrue),
	)
}

// toldBeforeDeletion reports whether what was told before the HTCJob was deleted stays: the deletion takes its jobs out of HTCondor,
// and that is neither a failure nor does it say anything about how those ended whose callbacks have come.
func toldBeforeDeletion(s situation) bool {
	ended := s.job.Status.Phase.Terminal() && s.run != nil && s.run.Attempt == int(s.job.Status.Attempt)
	return s.job.DeletionTimestamp != nil && (ended || s.run != nil && s.run.State == ledger.Submitted)
}

// maxConditionMessage keeps conditions far under the API's own limit of 32,768 bytes.
const maxConditionMessage = 4096

type setCondition func(kind string, is metav1.ConditionStatus, reason, message string)

// describeRun fills in everything that comes from the newest run.
func describeRun(status *v1alpha1.HTCJobStatus, s situation) {
	run, back := s.run, withheld(s)
	status.Attempt, status.SpecHash, status.Rerun = int32(run.Attempt), run.SpecHash, run.Rerun
	status.LastChecked = timeOrNil(run.Checked)
	// Whoever waits for a condition of the changed spec must not be answered with the end of the attempt before.
	if changed(s.job, run) && !back {
		status.ObservedGeneration = max(run.Generation, s.job.Status.ObservedGeneration)
		if edited(s.job, run) { // they may be as high, or higher, after a restore of etcd
			status.ObservedGeneration = min(status.ObservedGeneration, s.job.Generation-1)
		}
	}
	suspended := run.State == ledger.Removed && run.Stop == crosscheck.StopSuspended && run.Cluster > 0
	switch {
	case run.State == ledger.Intent:
		status.Active = int32(run.Procs)
	case back && !suspended: // what is kept back is another attempt than this one, which has ended
	case run.State == ledger.Refused:
		status.Failed = int32(run.Procs)
		status.CompletionTime = timeOrNil(run.Ended)
	case run.State == ledger.Submitted || suspended && back:
		n := s.counts
		status.Active, status.Succeeded, status.Failed = int32(n.Active), int32(n.Succeeded), int32(n.Failed)
		status.Idle, status.Running, status.Held = int32(n.Idle), int32(n.Running), int32(n.Held)
		status.JobID = v1alpha1.JobIDs(run.Cluster, run.Procs)
		status.ClusterID, status.Schedd = int32(run.Cluster), run.Schedd
		if run.Stop == crosscheck.StopSuspended {
			status.Failed -= int32(s.stopped)
		}
		if !suspended {
			status.StartTime = timeOrNil(run.Submitted)
		}
		if !suspended && !(stopping(s) && s.stopped > 0) {
			status.CompletionTime = timeOrNil(run.Ended)
		}
		status.Failures = describeFailures(s.failures)
	}
}

func describeFailures(failed []ledger.Proc) []v1alpha1.Failure {
	var failures []v1alpha1.Failure
	for _, p := range failed {
		failures = append(failures, v1alpha1.Failure{
			JobID: p.JobID(), ExitCode: int32OrNil(p.ExitCode), Signal: int32OrNil(p.Signal),
			Reason: p.Reason, Message: shorten(p.Message, maxNote), Stderr: p.Stderr,
		})
	}
	return failures
}

// phase puts it into one word, by the first rule that fits.
func phase(s situation) v1alpha1.Phase {
	run, n := s.run, s.counts
	switch {
	case withheld(s):
		return v1alpha1.PhaseSuspended
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
	case stopping(s) && run.Stop == crosscheck.StopSuspended && s.stopped > 0:
		return v1alpha1.PhaseSuspended
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
		if p.Reason != crosscheck.ReasonRemoved {
			return false
		}
	}
	return len(s.failures) > 0
}

func submittedCondition(set setCondition, s situation, v view) {
	switch run := s.run; {
	// The run before has ended, and the changed spec waits.
	case v.stuck && v.blocker.reason == reasonNamespaceLimit:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, v.blocker.reason, v.blocker.message)
	case withheld(s):
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, "Suspended", "spec.suspend is true")
	case run != nil && run.State == ledger.Submitted:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionTrue, "Submitted",
			fmt.Sprintf("cluster %d with %s is at schedd %s", run.Cluster, plural(run.Procs, "job"), run.Schedd))
	case run != nil && run.State == ledger.Refused:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, run.Reason, run.Message)
	case v.stuck:
		set(v1alpha1.ConditionSubmitted, metav1.ConditionFalse, v.blocker.reason, v.blocker.message)
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
		set(v1alpha1.ConditionComplete, metav1.ConditionFalse, "NotEnded", notEnded)
		set(v1alpha1.ConditionFailed, metav1.ConditionFalse, "NotEnded", notEnded)
	}
}

// reasonStopping is one of the condition Suspended while it is not yet True.
const reasonStopping = "Stopping"

const notEnded = "not every job has ended"

// progressConditions are the two by which kstatus, and what is built on it, tell "in progress" and "failed" from
// "current": present and true, or absent.
func progressConditions(set setCondition, status *v1alpha1.HTCJobStatus, s situation) {
	stays := ""
	switch status.Phase {
	case v1alpha1.PhaseSucceeded:
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		stays = v1alpha1.ConditionStalled
		reason, message := phaseNews(s, status.Phase)
		set(stays, metav1.ConditionTrue, reason, message)
	case v1alpha1.PhaseSuspended:
		if !stopping(s) {
			break
		}
		fallthrough
	default:
		stays = v1alpha1.ConditionReconciling
		set(stays, metav1.ConditionTrue, "NotEnded", notEnded)
	}
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling} {
		if kind != stays {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
	}
}

func suspendedCondition(set setCondition, status *v1alpha1.HTCJobStatus, s situation) {
	is, reason, message := metav1.ConditionFalse, "NotSuspended", "spec.suspend is false"
	switch run := s.run; {
	case withheld(s):
		is = metav1.ConditionTrue
		reason, message = phaseNews(s, v1alpha1.PhaseSuspended)
	case run != nil && run.Stop == crosscheck.StopSuspended && stopping(s):
		reason, message = reasonStopping, "the jobs are being removed from HTCondor"
	case s.job.Spec.Suspend && status.Phase.Terminal():
		reason, message = "Ended", "the jobs had ended before spec.suspend could stop them"
	case s.job.Spec.Suspend:
		reason, message = reasonStopping, "the jobs are about to be removed from HTCondor"
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSuspended) == nil:
		return
	}
	set(v1alpha1.ConditionSuspended, is, reason, message)
}

func heldCondition(set setCondition, status *v1alpha1.HTCJobStatus, s situation) {
	switch {
	case s.held != nil:
		set(v1alpha1.ConditionHeld, metav1.ConditionTrue, "Held", fmt.Sprintf("%s held; %s: %s. Mend the cause and condor_release it; or set spec.suspend to true and, when Suspended, to false, which sends all jobs anew; or delete the HTCJob",
			plural(s.counts.Held, "job"), s.held.JobID(), s.held.Message))
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHeld) != nil:
		set(v1alpha1.ConditionHeld, metav1.ConditionFalse, "NotHeld", "no job is held")
	}
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
