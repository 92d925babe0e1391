package lifecycle

import (
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// Deadline returns when an attempt must have ended; the zero time means no limit.
func Deadline(s Situation) time.Time {
	run, seconds := s.Run, s.Job.Spec.ActiveDeadlineSeconds
	if run == nil || run.State != ledger.Submitted || run.Stop != "" || s.Counts.Active == 0 || seconds == nil {
		return time.Time{}
	}
	return after(run.Submitted, *seconds)
}

// overdue reports whether the present attempt has exceeded its deadline.
func overdue(s Situation) bool {
	at := Deadline(s)
	return !at.IsZero() && !s.Now.Before(at)
}

// after adds seconds to t, at most a century of them, since a Duration cannot hold every int64.
func after(t time.Time, seconds int64) time.Time {
	const century = 100 * 365 * 24 * 3600
	return t.Add(time.Duration(min(seconds, century)) * time.Second)
}

// patienceForOutput is how long an HTCJob is kept beyond its expiry while its output has not been fetched.
const patienceForOutput = time.Hour

// Expiry returns when an ended HTCJob should be deleted; the zero time means never.
func Expiry(s Situation) time.Time {
	run, ttl := s.Run, s.Job.Spec.TTLSecondsAfterFinished
	if !over(s) || run.Ended.IsZero() || ttl == nil || s.Job.DeletionTimestamp != nil || due(s) {
		return time.Time{}
	}
	at := after(run.Ended, int64(*ttl))
	if s.Unfetched {
		at = at.Add(patienceForOutput)
	}
	return at
}
