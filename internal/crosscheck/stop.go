package crosscheck

import (
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Why htcd itself ends a run: the stop column of the ledger, and the reason in its procs and conditions.
const (
	StopSuspended = "Suspended"
	StopDeadline  = "DeadlineExceeded"
	StopFailures  = "MaxFailuresReached"
	StopSuccess   = "SuccessPolicy"
	StopCompleted = "EnoughSucceeded" // a workflow's: enough of it has succeeded
	StopFinished  = "Finished"        // a workflow's: one of its rules says so
	StopAborted   = "Aborted"         // a workflow's: something of it has failed
)

// removeReasons is what htcd gives HTCondor as the reason. It stays in the ads and permanently distinguishes these jobs
// from those that somebody else removed.
var removeReasons = map[string]string{
	StopSuspended: "htcd: spec.suspend is true",
	StopDeadline:  "htcd: spec.activeDeadlineSeconds have passed",
	StopFailures:  "htcd: spec.maxFailures was reached",
	StopSuccess:   "htcd: spec.successPolicy was met",
	StopCompleted: "htcd: as many sequences as spec.sequences.complete says have succeeded",
	StopFinished:  "htcd: a rule of spec.rules has finished the workflow",
	StopAborted:   "htcd: a step has failed, and by spec.failurePolicy or its abortExitCodes that ends everything",
}

// RemoveReason returns the reason given to HTCondor when the jobs of a stopped run are removed.
func RemoveReason(stop string) string { return removeReasons[stop] }

// StopMessage returns why the jobs of a stopped run are removed.
func StopMessage(stop string) string { return strings.TrimPrefix(removeReasons[stop], "htcd: ") }

// Unmade is the end of a job that its factory has not made when a run is stopped, or when the factory has gone.
func Unmade(stop string, at time.Time) ledger.Proc {
	if stop == "" {
		return unmade(ReasonLost, "", at)
	}
	return unmade(stop, removeReasons[stop]+"; ", at)
}

func unmade(reason, why string, at time.Time) ledger.Proc {
	return ledger.Proc{
		Status:  ledger.StatusFailed,
		Reason:  reason,
		Message: why + "HTCondor had not made this job",
		Source:  FromHTCondor,
		Changed: at,
	}
}

// ReasonStuck is the reason htcd gives for removing jobs whose files will never arrive.
const ReasonStuck = "htcd: never completely spooled"

// ReasonCancelled is the reason htcd gives for removing the jobs that a user has cancelled one by one.
const ReasonCancelled = "htcd: cancelled by the annotation htc.cern.ch/cancel-procs"

// UnmadeCancelled is the end of a job that its factory has not made when a user has cancelled it and its run is
// stopped.
func UnmadeCancelled(at time.Time) ledger.Proc {
	return unmade(ReasonRemoved, ReasonCancelled+"; ", at)
}

// NeverRan reports whether a job left the queue because its files never arrived, whether the schedd or htcd removed it.
func NeverRan(j condor.Job) bool {
	return j.StagingFailed() || j.Status == condor.Removed && strings.HasPrefix(j.RemoveReason, ReasonStuck)
}

// StopOf returns the stop for which a job was removed, "" if none.
func StopOf(j condor.Job) string {
	for stop, reason := range removeReasons {
		if strings.HasPrefix(j.RemoveReason, reason) && j.Outcome().State == condor.OutcomeRemoved {
			return stop
		}
	}
	return ""
}
