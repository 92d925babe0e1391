package condor

import (
	"syscall"
)

// UnsavedSignal is the signal by which the wrapper ends when there is no checkpoint although the return code says so.
// Nothing else sends it to the wrapper.
const UnsavedSignal syscall.Signal = InteractiveSignal - 1

// unsaved returns the outcome of a job that ended with the return code of a checkpoint without one.
func (j Job) unsaved() (Outcome, bool) {
	is := j.ExitBySignal != nil && *j.ExitBySignal && j.ExitSignal != nil && *j.ExitSignal == int(UnsavedSignal)
	return Outcome{
		State:   OutcomeFailed,
		Reason:  "CheckpointMissing",
		Message: "the script has ended with spec.checkpoint.exitCode, but without one of spec.checkpoint.files; its standard error names it",
	}, is
}
