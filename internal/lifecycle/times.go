package lifecycle

import (
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// deadline returns when an active attempt must have ended; the zero time means no limit.
func deadline(s Situation) time.Time {
	if s.Run.Stop != "" || s.Job.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return after(s.Run.Submitted, *s.Job.Spec.ActiveDeadlineSeconds)
}

// overdue reports whether an active attempt has exceeded its deadline.
func overdue(s Situation) bool {
	at := deadline(s)
	return !at.IsZero() && !s.Now.Before(at)
}

func deadlinePassed(job *v1alpha1.HTCJob) string {
	return fmt.Sprintf("%s have passed since the submission (spec.activeDeadlineSeconds)", Plural(int(*job.Spec.ActiveDeadlineSeconds), "second"))
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
	if !s.over() || run.Ended.IsZero() || ttl == nil || s.Job.DeletionTimestamp != nil {
		return time.Time{}
	}
	at := after(run.Ended, int64(*ttl))
	if s.Unfetched {
		at = at.Add(patienceForOutput)
	}
	return at
}
