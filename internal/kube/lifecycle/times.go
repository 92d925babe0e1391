package lifecycle

import (
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/pool"
)

// deadline returns when an active attempt must have ended; the zero time means no limit.
func deadline(s Situation) time.Time {
	seconds, _ := s.activeDeadline()
	if s.Run.Stop != "" && s.Run.Stop != crosscheck.StopFailures || seconds == nil {
		return time.Time{}
	}
	return After(s.Run.Submitted, *seconds)
}

// overdue reports whether an active attempt has exceeded its deadline.
func overdue(s Situation) bool {
	at := deadline(s)
	return !at.IsZero() && !s.Now.Before(at)
}

// activeDeadline returns how long an attempt may take, nil for any time, and who says so.
func (s Situation) activeDeadline() (seconds *int64, whose string) {
	return ActiveDeadline(s.Job.Spec.ActiveDeadlineSeconds, *s.Run)
}

// ActiveDeadline returns how long an attempt may take, nil for any time, and who says so: the spec, or the pool of its
// run.
func ActiveDeadline(own *int64, run ledger.Run) (seconds *int64, whose string) {
	if own != nil {
		return own, "spec.activeDeadlineSeconds"
	}
	e := pool.ReadEffective(run.Pool, run.Effective)
	if e == nil {
		return nil, ""
	}
	return e.ActiveDeadlineSeconds, "a default of HTCPool " + e.Pool
}

// effective returns what holds for the newest run; nil if it was sent by no pool.
func (s Situation) effective() *v1alpha1.Effective {
	e := pool.ReadEffective(s.Run.Pool, s.Run.Effective)
	if e == nil {
		return nil
	}
	e.ActiveDeadlineSeconds, _ = s.activeDeadline()
	e.TTLSecondsAfterFinished = nil
	if is := phase(s); is.Terminal() || s.Job.Spec.TTLSecondsAfterFinished != nil {
		e.TTLSecondsAfterFinished = pool.Keep(s.Job.Spec.TTLSecondsAfterFinished, s.Keep, is)
	}
	return e
}

// TTL returns how many seconds an ended HTCJob is kept, nil for as long as nobody deletes it, and who says so.
func (s Situation) TTL() (seconds *int32, whose string) {
	own := s.Job.Spec.TTLSecondsAfterFinished
	seconds = pool.Keep(own, s.Keep, phase(s))
	if own != nil && *seconds == *own {
		return seconds, "spec.ttlSecondsAfterFinished"
	}
	return seconds, "keep of HTCPool " + s.Run.Pool
}

// After adds seconds to t, at most a century of them, since a Duration cannot hold every int64.
func After(t time.Time, seconds int64) time.Time {
	const century = 100 * 365 * 24 * 3600
	return t.Add(time.Duration(min(seconds, century)) * time.Second)
}

// ran returns how long the jobs of an attempt ran, from the first start to the last end, empty until HTCondor has
// confirmed all ends.
func ran(s Situation) string {
	run := s.Run
	if s.Counts.Active > 0 || !run.Confirmed || run.Started.IsZero() || run.Finished.Before(run.Started) {
		return ""
	}
	return run.Finished.Sub(run.Started).Round(time.Second).String()
}

// Expiry returns when an ended HTCJob should be deleted; the zero time means never.
func Expiry(s Situation) time.Time {
	if !s.over() || s.Job.DeletionTimestamp != nil {
		return time.Time{}
	}
	ttl, _ := s.TTL()
	return KeptUntil(s.Run.Ended, ttl, s.Unfetched || s.Pushes.Unpushed > 0)
}

// patienceForOutput is how long an object is kept beyond its expiry while its output has not been fetched, or pushed.
const patienceForOutput = time.Hour

// KeptUntil returns when something should be deleted that is kept for so many seconds after its end; owes: some of its
// output has not been fetched, or pushed. The zero time means never.
func KeptUntil(ended time.Time, ttl *int32, owes bool) time.Time {
	switch {
	case ended.IsZero() || ttl == nil:
		return time.Time{}
	case owes:
		ended = ended.Add(patienceForOutput)
	}
	return After(ended, int64(*ttl))
}
