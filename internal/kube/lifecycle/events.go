package lifecycle

import (
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// phaseNews returns the reason and message for the conditions and the Event when a phase is reached.
func phaseNews(s Situation, phase v1alpha1.Phase) (reason, message string) {
	n := s.Counts
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return success(s)
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		return failureNews(s, phase)
	case v1alpha1.PhaseHeld:
		if s.Held != nil && s.Held.Reason == crosscheck.ReasonPoolSuspended {
			return s.Held.Reason, heldByPool(s)
		}
		if s.Held != nil {
			return "Held", fmt.Sprintf("%s held; %s: %s", IsOrAre(n.Held, "job"), nameOf(s, *s.Held), s.Held.Message)
		}
	case v1alpha1.PhaseRunning:
		if s.awaitsOutput() {
			return AwaitsOutput(Plural(n.Succeeded, "job"))
		}
		return "Running", fmt.Sprintf("%s running", IsOrAre(n.Running, "job"))
	case v1alpha1.PhaseSuspended:
		if s.unadmitted() {
			message = s.Quota.Message
			if s.Stopped > 0 {
				message = fmt.Sprintf("%s; %s removed from HTCondor", message, wasOrWere(s.Stopped, "job"))
			}
			return s.Quota.Reason, message
		}
		message = "spec.suspend is true: nothing is sent to HTCondor until it is false"
		if s.Stopped > 0 {
			message = fmt.Sprintf(
				"spec.suspend is true: %s removed from HTCondor; when it is false, what had not ended is sent again as the next attempt",
				wasOrWere(s.Stopped, "job"),
			)
		}
		return "Suspended", message
	}
	return "", ""
}

// heldByPool says why jobs of a suspended pool do not start.
func heldByPool(s Situation) string {
	return fmt.Sprintf(
		"%s held, %s among them: HTCPool %s is suspended; what waited for a slot there starts no sooner than it is Online or Draining again",
		IsOrAre(s.Counts.Held, "job"),
		nameOf(s, *s.Held),
		s.Run.Pool,
	)
}

// success says that an attempt has succeeded.
func success(s Situation) (reason, message string) {
	n := s.Counts
	if n.Failed == 0 {
		return "Succeeded", fmt.Sprintf("%s succeeded", Plural(n.Succeeded, "job"))
	}
	return crosscheck.StopSuccess, fmt.Sprintf(
		"%s succeeded, which is enough (spec.successPolicy); %d failed, %s removed",
		Plural(n.Succeeded, "job"),
		n.Failed-s.stopped(),
		wasOrWere(s.stopped(), "other"),
	)
}

// failureNews says why an attempt has failed. To an interactive one nothing else was to happen.
func failureNews(s Situation, phase v1alpha1.Phase) (reason, message string) {
	reason, message = failure(s, phase)
	if s.Job.Spec.Interactive && reason == crosscheck.StopDeadline {
		reason = condor.ReasonInteractive
	}
	return reason, message
}

func failure(s Situation, phase v1alpha1.Phase) (reason, message string) {
	run, n := s.Run, s.Counts
	if run.State == ledger.Refused {
		return run.Reason, run.Message
	}
	all := Plural(n.Failed+n.Succeeded, "job")
	switch {
	case run.Stop == crosscheck.StopFailures:
		message = fmt.Sprintf("%s: %s removed", run.Message, wasOrWere(s.Stopped, "other job"))
		if len(s.Failures) > 0 {
			message += "; " + howFailed(s, s.Failures[0])
		}
		return crosscheck.StopFailures, message
	case run.Stop == crosscheck.StopSuccess:
		message = fmt.Sprintf(
			"%d of %s failed, and %d removed when their callbacks had met spec.successPolicy: HTCondor says otherwise",
			n.Failed-s.Stopped,
			all,
			s.Stopped,
		)
	case run.Stop == crosscheck.StopDeadline && s.Stopped > 0:
		message = fmt.Sprintf("%s: %d of %s had not ended and %s removed", run.Message, s.Stopped, all, be(s.Stopped))
		if s.Stopped == n.Failed {
			return crosscheck.StopDeadline, message
		}
		return crosscheck.StopDeadline, fmt.Sprintf("%s; %d had failed before", message, n.Failed-s.Stopped)
	case phase == v1alpha1.PhaseRemoved:
		message = fmt.Sprintf("%d of %s removed from HTCondor", n.Failed, all)
	default:
		message = fmt.Sprintf("%d of %s failed", n.Failed, all)
	}
	if len(s.Failures) > 0 {
		message += "; " + howFailed(s, s.Failures[0])
	}
	return endReason(s, phase), message
}

// endReason returns the reason that all listed failures share if it says more than that they failed, otherwise the
// phase.
func endReason(s Situation, phase v1alpha1.Phase) string {
	shared := string(phase)
	for i, p := range s.Failures {
		itself := p.ExitCode != nil && p.Reason != condor.ReasonHeldTooLong || p.Signal != nil || p.Reason == ""
		if itself || i > 0 && p.Reason != shared {
			return string(phase)
		}
		shared = p.Reason
	}
	return shared
}

func wasOrWere(n int, noun string) string { return Agree(n, noun, "was", "were") }

func be(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// Event is reported to the user once.
type Event struct {
	Warning         bool
	Reason, Message string
}

// Events returns what happened between two statuses: one event for each kind of change, however many jobs changed. That
// jobs were sent, run and have succeeded is none: conditions say so in the same words, with their times, and each event
// is a request.
func Events(before, after v1alpha1.HTCJobStatus, s Situation) []Event {
	var events []Event
	tell := func(warning bool, reason, format string, args ...any) {
		events = append(events, Event{warning, reason, fmt.Sprintf(format, args...)})
	}
	events = append(events, logsNews(before, after)...)
	events = append(events, FreshNews(before.Conditions, after.Conditions)...)
	events = append(events, MatchableNews(before.Conditions, after.Conditions)...)
	events = append(events, refusalNews(before, after, v1alpha1.ConditionRerunRefused)...)
	events = append(events, refusalNews(before, after, v1alpha1.ConditionCancelRefused)...)
	again := after.Attempt > before.Attempt && before.Attempt > 0
	turned := before.Phase != after.Phase || again
	if before.Phase == v1alpha1.PhaseSuspended && after.Phase != v1alpha1.PhaseSuspended && !s.Waits() {
		if s.Quota != nil {
			tell(false, "Admitted", "there is quota: the jobs are sent")
		} else {
			tell(false, "Resumed", "spec.suspend is false: the jobs are sent")
		}
	}
	if again {
		tell(false, "NextAttempt", "attempt %d begins: %s", after.Attempt, whyAgain(before, after))
	}
	if n := corrected(before, s); n > 0 {
		tell(true, "SuccessCorrected", "%s reported success, but HTCondor says otherwise: %d active, %d failed",
			Plural(n, "job"), s.Counts.Active, s.Counts.Failed)
	}
	switch {
	case before.Held == 0 && after.Held > 0:
		reason, message := phaseNews(s, v1alpha1.PhaseHeld)
		if reason != "" {
			tell(true, reason, "%s", message)
		}
	case before.Held > 0 && after.Held == 0 && after.Active > 0 && !again:
		tell(false, "Released", "no job is held any more: %d idle, %d running", after.Idle, after.Running)
	}
	if before.Failed == 0 && after.Failed > 0 && !after.Phase.Terminal() && len(s.Failures) > 0 {
		tell(
			true,
			"JobFailed",
			"%d of %s failed so far; %s",
			after.Failed,
			Plural(s.Run.Procs, "job"),
			howFailed(s, s.Failures[0]),
		)
	}
	if !turned {
		return append(events, lastWords(before, after, s)...)
	}
	switch reason, message := phaseNews(s, after.Phase); {
	case after.Phase == v1alpha1.PhaseHeld,
		reason == "",
		reason == string(v1alpha1.PhaseRunning),
		reason == string(v1alpha1.PhaseSucceeded):
		// Reported above, or nothing to report.
		if after.Phase == v1alpha1.PhaseIdle && before.Phase == v1alpha1.PhaseRunning && !again {
			tell(false, "Idle", "%s for a slot again", waits(int(after.Active)))
		}
	default:
		tell(after.Phase == v1alpha1.PhaseFailed || after.Phase == v1alpha1.PhaseRemoved, reason, "%s", message)
	}
	return events
}

// corrected returns how many jobs had counted as succeeded because their callbacks said so before HTCondor said
// otherwise.
func corrected(before v1alpha1.HTCJobStatus, s Situation) int {
	if s.Run == nil || s.Run.State != ledger.Submitted || s.Run.Attempt != int(before.Attempt) {
		return 0
	}
	return int(before.Succeeded) - s.Counts.Succeeded
}

func waits(n int) string { return Agree(n, "job", "waits", "wait") }

// whyAgain returns why there is another attempt.
func whyAgain(before, after v1alpha1.HTCJobStatus) string {
	switch {
	case after.Rerun != before.Rerun && after.Partial != nil:
		return fmt.Sprintf("the annotation %s is %q: %s", v1alpha1.RerunAnnotation, after.Rerun, some(after.Partial))
	case after.Rerun != before.Rerun:
		return fmt.Sprintf("the annotation %s is %q", v1alpha1.RerunAnnotation, after.Rerun)
	case after.Partial != nil:
		return some(after.Partial)
	case before.Phase == v1alpha1.PhaseSuspended, after.SpecHash == before.SpecHash && before.SpecHash != "":
		return "all jobs are sent again"
	}
	return "the spec has changed"
}

// some says which jobs an attempt sends that does not send all.
func some(p *v1alpha1.Partial) string {
	return fmt.Sprintf(
		"only the jobs %s run again, %d others have ended",
		Shorten(p.Procs, maxLine),
		p.Succeeded+p.Failed,
	)
}
