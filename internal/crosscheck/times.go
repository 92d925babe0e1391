package crosscheck

import (
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// finished returns when a job that had started ended; zero if it has not.
func finished(j condor.Job) time.Time {
	switch {
	case j.Done() && j.CompletionDate > 0:
		return time.Unix(j.CompletionDate, 0)
	case (j.Done() || j.Status == condor.Removed) && j.EnteredCurrentStatus > 0:
		return time.Unix(j.EnteredCurrentStatus, 0)
	}
	return time.Time{}
}

// withTimes adds to a run what HTCondor says of some of its jobs: whose they are, when the first started, and when the
// last ended.
func withTimes(run ledger.Run, observed map[int]Observation, at time.Time) ledger.Run {
	for _, o := range observed {
		if o.account != "" {
			run.Account = o.account
		}
		if plausible(o.started, run, at) && (run.Started.IsZero() || o.started.Before(run.Started)) {
			run.Started = o.started
		}
		if plausible(o.finished, run, at) && o.finished.After(run.Finished) {
			run.Finished = o.finished
		}
	}
	return run
}

// drift is more than two clocks differ by.
const drift = 24 * time.Hour

// plausible reports whether a job of a run can have started or ended then. The owner of a job can write any time into
// its ad.
func plausible(t time.Time, run ledger.Run, at time.Time) bool {
	return t.After(run.Created.Add(-drift)) && t.Before(at.Add(drift))
}

func sameTimes(a, b ledger.Run) bool {
	return a.Account == b.Account && a.Started.Equal(b.Started) && a.Finished.Equal(b.Finished)
}
