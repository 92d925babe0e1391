package kube

import (
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// deadline returns when an attempt must have ended, the zero time when it may take as long as it does.
func deadline(s situation) time.Time {
	run, seconds := s.run, s.job.Spec.ActiveDeadlineSeconds
	if run == nil || run.State != ledger.Submitted || run.Stop != "" || s.counts.Active == 0 || seconds == nil {
		return time.Time{}
	}
	return after(run.Submitted, *seconds)
}

// overdue tells whether the present attempt has taken longer than it may.
func overdue(s situation) bool {
	at := deadline(s)
	return !at.IsZero() && !s.now.Before(at)
}

// after is so many seconds later; what no Duration can hold is later than anybody waits.
func after(t time.Time, seconds int64) time.Time {
	const century = 100 * 365 * 24 * 3600
	return t.Add(time.Duration(min(seconds, century)) * time.Second)
}
