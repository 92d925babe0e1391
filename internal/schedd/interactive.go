package schedd

import "syscall"

// ReasonInteractive is the reason for which a job has failed whose container waited for people, and whose time is over.
const ReasonInteractive = "Interactive"

// interactiveSignal is the signal by which the wrapper ends then. Nothing else sends it to the wrapper.
const interactiveSignal syscall.Signal = missingSignal - 1

// checkInteractive refuses what would have HTCondor begin an interactive job again when its time is over.
func (d Description) checkInteractive(options []option) error {
	if d.Interactive == 0 {
		return nil
	}
	for _, key := range []string{"max_retries", "retry_until", "on_exit_remove", "on_exit_hold"} {
		if text, there := value(options, key); there && (key != "max_retries" || text != "0") {
			return Refusal(
				"spec.interactive: %s would have HTCondor run the job again when its time is over, found %s = %s: leave it out, and spec.retries",
				key,
				key,
				clip(text),
			)
		}
	}
	return nil
}

// interactive returns the outcome of a job whose container waited for people.
func (j Job) interactive() (Outcome, bool) {
	over := j.ExitBySignal != nil && *j.ExitBySignal && j.ExitSignal != nil && *j.ExitSignal == int(interactiveSignal)
	return Outcome{
		State:   OutcomeFailed,
		Reason:  ReasonInteractive,
		Message: "it was interactive (spec.interactive), and its time is over",
	}, over
}
