package submit

import "htc.cern.ch/htcd/internal/schedd/condor"

// checkInteractive refuses what would have HTCondor begin an interactive job again when its time is over.
func (d Description) checkInteractive(options []option) error {
	if d.Interactive == 0 {
		return nil
	}
	for _, key := range []string{"max_retries", "retry_until", "on_exit_remove", "on_exit_hold"} {
		if text, there := value(options, key); there && (key != "max_retries" || text != "0") {
			return condor.Refusal(
				"spec.interactive: %s would have HTCondor run the job again when its time is over, found %s = %s: leave it out, and spec.retries",
				key,
				key,
				condor.Clip(text),
			)
		}
	}
	return nil
}
