package condor

import (
	"cmp"
	"fmt"
	"strings"
)

// Deadlines are how long a job may be on hold, wait for a slot and run, in seconds; 0: for any time.
type Deadlines struct {
	HeldDeadline, IdleDeadline, RunDeadline int64
}

// The attributes with the deadlines, in seconds.
const (
	AttrHeldDeadline = "HTCJobHeldDeadline"
	AttrIdleDeadline = "HTCJobIdleDeadline"
	AttrRunDeadline  = "HTCJobRunDeadline"
)

// The reasons for which a job has failed that was removed because it was held, or ran, beyond its deadline.
const (
	ReasonHeldTooLong = "HeldDeadlineExceeded"
	ReasonRanTooLong  = "RunDeadlineExceeded"
	ReasonIdleTooLong = "IdleDeadlineExceeded"
)

// HoldRanTooLong is the code with which HTCondor holds a job that has run for longer than its runLimit (23.9, 25.14).
const HoldRanTooLong = 47

// Check refuses what is no time.
func (d Deadlines) Check() error {
	if d.HeldDeadline < 0 || d.IdleDeadline < 0 || d.RunDeadline < 0 {
		return Refusal(
			"spec.heldDeadlineSeconds, spec.idleDeadlineSeconds, spec.runDeadlineSeconds: expected nothing below 0",
		)
	}
	return nil
}

// Or completes the deadlines with others.
func (d Deadlines) Or(others Deadlines) Deadlines {
	return Deadlines{
		HeldDeadline: cmp.Or(d.HeldDeadline, others.HeldDeadline),
		IdleDeadline: cmp.Or(d.IdleDeadline, others.IdleDeadline),
		RunDeadline:  cmp.Or(d.RunDeadline, others.RunDeadline),
	}
}

// Late returns a condition that is true for a job past one of its deadlines, "" without any. A job that waits for its
// files to be spooled does not count as held, nor one whose pool is suspended.
func (d Deadlines) Late() string {
	var conditions []string
	if d.RunDeadline > 0 {
		conditions = append(
			conditions,
			fmt.Sprintf("JobStatus == %d && HoldReasonCode == %d", Held, HoldRanTooLong),
			fmt.Sprintf(
				"JobStatus == %d && JobCurrentStartExecutingDate >= JobCurrentStartDate && time() - JobCurrentStartExecutingDate > %d",
				Running,
				d.RunDeadline,
			),
		)
	}
	if d.HeldDeadline > 0 {
		conditions = append(
			conditions,
			fmt.Sprintf("JobStatus == %d && HoldReasonCode =!= %d && %s && time() - EnteredCurrentStatus > %d",
				Held, HoldCodeSpooling, PoolNotHeld, d.HeldDeadline),
		)
	}
	if d.IdleDeadline > 0 {
		conditions = append(
			conditions,
			fmt.Sprintf("JobStatus == %d && time() - EnteredCurrentStatus > %d", Idle, d.IdleDeadline),
		)
	}
	return strings.Join(conditions, " || ")
}

// tooLate returns the outcome of a job that was removed because a deadline had passed.
func (j Job) tooLate() (Outcome, bool) {
	switch {
	case j.ranTooLong(), j.overdue(Running, j.RunDeadline):
		return Outcome{State: OutcomeFailed, Reason: ReasonRanTooLong,
			Message: fmt.Sprintf("removed: it ran for more than %d s (runDeadlineSeconds)", j.RunDeadline)}, true
	case j.overdue(Held, j.HeldDeadline):
		m := fmt.Sprintf("removed: on hold for more than %d s (heldDeadlineSeconds)", j.HeldDeadline)
		if j.LastHoldReason != "" {
			m += "; HTCondor held it because: " + j.LastHoldReason
		}
		code := j.Returned()
		if code != nil {
			m += "; its script had ended before, with " + ExitMessage(*code)
		}
		return Outcome{State: OutcomeFailed, Reason: ReasonHeldTooLong, Message: m, ExitCode: code}, true
	case j.overdue(Idle, j.IdleDeadline):
		return Outcome{State: OutcomeFailed, Reason: ReasonIdleTooLong,
			Message: fmt.Sprintf("removed: no slot within %d s (idleDeadlineSeconds)", j.IdleDeadline)}, true
	}
	return Outcome{}, false
}

// ranTooLong reports whether the job's own PeriodicRemove removed it while it was held for having run too long.
func (j Job) ranTooLong() bool {
	return j.RunDeadline > 0 && j.Status == Removed && j.LastStatus == Held && j.LastHoldReasonCode == HoldRanTooLong &&
		strings.HasPrefix(j.RemoveReason, reasonPeriodicRemove)
}

// overdue reports whether the job's own PeriodicRemove removed it for having been in the state beyond the deadline. If
// that expression also contains a user's condition, the time tells which one applied: PeriodicRemove leaves
// EnteredCurrentStatus unchanged.
func (j Job) overdue(state JobStatus, deadline int64) bool {
	if deadline == 0 || j.Status != Removed || j.LastStatus != state ||
		!strings.HasPrefix(j.RemoveReason, reasonPeriodicRemove) {
		return false
	}
	alone := strings.HasPrefix(j.RemoveReason, reasonPeriodicRemove+" '"+j.Late()+"'")
	return alone || j.JobFinishedHookDone-j.EnteredCurrentStatus >= deadline
}
