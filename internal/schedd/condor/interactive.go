package condor

import "syscall"

// ReasonInteractive is the reason for which a job has failed whose container waited for people, and whose time is over.
const ReasonInteractive = "Interactive"

// InteractiveSignal is the signal by which the wrapper ends then. Nothing else sends it to the wrapper.
const InteractiveSignal syscall.Signal = MissingSignal - 1

// interactive returns the outcome of a job whose container waited for people.
func (j Job) interactive() (Outcome, bool) {
	over := j.ExitBySignal != nil && *j.ExitBySignal && j.ExitSignal != nil && *j.ExitSignal == int(InteractiveSignal)
	return Outcome{
		State:   OutcomeFailed,
		Reason:  ReasonInteractive,
		Message: "it was interactive (spec.interactive), and its time is over",
	}, over
}
