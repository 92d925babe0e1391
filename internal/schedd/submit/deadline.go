package submit

import (
	"fmt"
	"strconv"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// runLimit is the submit command by which HTCondor limits an execution: it holds the job then. The transfer of files
// does not count, unlike with allowed_job_duration, and the next execution counts anew. It passes over an execution
// that begins in the second in which its shadow did, as most do on a fast machine, or that a schedd has found again
// after a restart (23.9: the shadow holds only what has begun after itself): PeriodicRemove ends those.
const runLimit = "allowed_execute_duration"

// keepDeadlines removes jobs that were held or idle, or ran, for too long. Those that HTCondor holds for it no
// condition of a user's releases.
func (o JobOptions) keepDeadlines(options []option) (_ []option, err error) {
	if release, there := value(options, "periodic_release"); there && o.RunDeadline > 0 {
		if release, err = joined(
			"&&",
			fmt.Sprintf("HoldReasonCode =!= %d", condor.HoldRanTooLong),
			release,
		); err != nil {
			return nil, condor.Refusal("periodic_release: %w", err)
		}
		options = replace(options, "periodic_release", release)
	}
	if late := o.Late(); late != "" {
		return orElse(options, "periodic_remove", late)
	}
	return options, nil
}

// deadlineAttributes returns what Job.Outcome needs of the deadlines.
func deadlineAttributes(d condor.Deadlines) (all []option) {
	for _, a := range []struct {
		name    string
		seconds int64
	}{{condor.AttrHeldDeadline, d.HeldDeadline}, {condor.AttrIdleDeadline, d.IdleDeadline},
		{condor.AttrRunDeadline, d.RunDeadline}} {
		if a.seconds > 0 {
			all = append(all, option{"My." + a.name, strconv.FormatInt(a.seconds, 10)})
		}
	}
	return all
}
