package kube

import (
	"fmt"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// phaseNews is the reason and message that stand in the conditions and in the Event when a phase is reached.
func phaseNews(s situation, phase v1alpha1.Phase) (reason, message string) {
	n := s.counts
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return "Succeeded", fmt.Sprintf("%s succeeded", plural(n.Succeeded, "job"))
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		return failureNews(s, phase)
	case v1alpha1.PhaseHeld:
		if s.held != nil {
			return "Held", fmt.Sprintf("%s held; %s: %s", isOrAre(n.Held, "job"), s.held.JobID(), s.held.Message)
		}
	case v1alpha1.PhaseRunning:
		return "Running", fmt.Sprintf("%s running", isOrAre(n.Running, "job"))
	case v1alpha1.PhaseSuspended:
		message = "spec.suspend is true: nothing is sent to HTCondor until it is false"
		if s.stopped > 0 {
			message = fmt.Sprintf("spec.suspend is true: %s removed from HTCondor; when it is false, all are sent anew as the next attempt",
				wasOrWere(s.stopped, "job"))
		}
		return "Suspended", message
	}
	return "", ""
}

// failureNews says why an attempt has failed.
func failureNews(s situation, phase v1alpha1.Phase) (reason, message string) {
	run, n := s.run, s.counts
	if run.State == ledger.Refused {
		return run.Reason, run.Message
	}
	all := plural(n.Failed+n.Succeeded, "job")
	switch {
	case run.Stop == crosscheck.StopDeadline && s.stopped > 0:
		message = fmt.Sprintf("%s: %d of %s had not ended and %s removed", run.Message, s.stopped, all, be(s.stopped))
		if s.stopped == n.Failed {
			return crosscheck.StopDeadline, message
		}
		return crosscheck.StopDeadline, fmt.Sprintf("%s; %d had failed before", message, n.Failed-s.stopped)
	case phase == v1alpha1.PhaseRemoved:
		message = fmt.Sprintf("%d of %s removed from HTCondor", n.Failed, all)
	default:
		message = fmt.Sprintf("%d of %s failed", n.Failed, all)
	}
	if len(s.failures) > 0 {
		message += fmt.Sprintf("; %s: %s", s.failures[0].JobID(), s.failures[0].Message)
	}
	return endReason(s, phase), message
}

// endReason is the reason that all the listed failures share, where it is one that says more than that they failed.
func endReason(s situation, phase v1alpha1.Phase) string {
	shared := string(phase)
	for i, p := range s.failures {
		switch {
		case p.ExitCode != nil || p.Signal != nil || p.Reason == "", i > 0 && p.Reason != shared:
			return string(phase)
		}
		shared = p.Reason
	}
	return shared
}

func wasOrWere(n int, noun string) string { return plural(n, noun) + " " + be(n) }

func be(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// event is what the user is told once.
type event struct {
	warning         bool
	reason, message string
}

// eventsOf says what happened from one status to the next, one event for each kind of thing, however many jobs it
// happened to. That jobs were sent is told where that is recorded.
func eventsOf(before, after v1alpha1.HTCJobStatus, s situation) []event {
	var events []event
	tell := func(warning bool, reason, format string, args ...any) {
		events = append(events, event{warning, reason, fmt.Sprintf(format, args...)})
	}
	events = append(events, logsNews(before, after)...)
	again := after.Attempt > before.Attempt && before.Attempt > 0
	turned := before.Phase != after.Phase || again
	if before.Phase == v1alpha1.PhaseSuspended && after.Phase != v1alpha1.PhaseSuspended && !s.job.Spec.Suspend {
		tell(false, "Resumed", "spec.suspend is false: the jobs are sent")
	}
	if again {
		tell(false, "NextAttempt", "attempt %d begins: %s", after.Attempt, whyAgain(before, after))
	}
	if n := corrected(before, s); n > 0 {
		tell(true, "SuccessCorrected", "%s had told of a success, but HTCondor says otherwise: %d active, %d failed",
			plural(n, "job"), s.counts.Active, s.counts.Failed)
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
	if before.Failed == 0 && after.Failed > 0 && !after.Phase.Terminal() && len(s.failures) > 0 {
		tell(true, "JobFailed", "%d of %s failed so far; %s: %s", after.Failed, plural(s.run.Procs, "job"),
			s.failures[0].JobID(), s.failures[0].Message)
	}
	if !turned {
		return events
	}
	switch reason, message := phaseNews(s, after.Phase); {
	case after.Phase == v1alpha1.PhaseHeld, reason == "": // told above, or nothing to tell
		if after.Phase == v1alpha1.PhaseIdle && before.Phase == v1alpha1.PhaseRunning && !again {
			tell(false, "Idle", "%s for a slot again", waits(int(after.Active)))
		}
	default:
		tell(after.Phase == v1alpha1.PhaseFailed || after.Phase == v1alpha1.PhaseRemoved, reason, "%s", message)
	}
	return events
}

// corrected is how many jobs had counted as succeeded by their own word before HTCondor said otherwise.
func corrected(before v1alpha1.HTCJobStatus, s situation) int {
	if s.run == nil || s.run.State != ledger.Submitted || s.run.Attempt != int(before.Attempt) {
		return 0
	}
	return int(before.Succeeded) - s.counts.Succeeded
}

func waits(n int) string {
	if n == 1 {
		return "1 job waits"
	}
	return fmt.Sprintf("%d jobs wait", n)
}

// whyAgain says why there is another attempt.
func whyAgain(before, after v1alpha1.HTCJobStatus) string {
	switch {
	case after.Rerun != before.Rerun:
		return fmt.Sprintf("the annotation %s is %q", v1alpha1.RerunAnnotation, after.Rerun)
	case before.Phase == v1alpha1.PhaseSuspended, after.SpecHash == before.SpecHash && before.SpecHash != "":
		return "all jobs are sent anew"
	}
	return "the spec has changed"
}

// tellNews makes Events of what happened.
func (c *Controller) tellNews(job *v1alpha1.HTCJob, happened []event) {
	for _, e := range happened {
		if e.warning {
			c.Events.Warning(job, e.reason, e.message)
		} else {
			c.Events.Normal(job, e.reason, e.message)
		}
	}
}
