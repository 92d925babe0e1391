package crosscheck

import (
	"strings"

	"htc.cern.ch/htcd/internal/schedd"
)

// Why htcd itself ends a run: the stop column of the ledger, and the reason that its procs and conditions have.
const (
	StopSuspended = "Suspended"
	StopDeadline  = "DeadlineExceeded"
)

// removeReasons is what HTCondor is told. It stays in the ads, and distinguishes these jobs from those that somebody else
// removed, whoever reads the ads and when.
var removeReasons = map[string]string{
	StopSuspended: "htcd: spec.suspend is true",
	StopDeadline:  "htcd: spec.activeDeadlineSeconds have passed",
}

// RemoveReason is the reason with which the jobs of a stopped run are removed.
func RemoveReason(stop string) string { return removeReasons[stop] }

// StopMessage says why the jobs of a stopped run are removed.
func StopMessage(stop string) string { return strings.TrimPrefix(removeReasons[stop], "htcd: ") }

// ReasonStuck is the reason with which htcd removes jobs whose files will never arrive.
const ReasonStuck = "htcd: never completely spooled"

// NeverRan reports whether a job left the queue because its files never arrived, by the schedd's own doing or by ours.
func NeverRan(j schedd.Job) bool {
	return j.StagingFailed() || j.Status == schedd.Removed && strings.HasPrefix(j.RemoveReason, ReasonStuck)
}

// stopOf returns for which stop a job was removed, "" for none.
func stopOf(j schedd.Job) string {
	for stop, reason := range removeReasons {
		if strings.HasPrefix(j.RemoveReason, reason) {
			return stop
		}
	}
	return ""
}
