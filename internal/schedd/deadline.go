package schedd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Deadlines are how long a job may be on hold, wait for a slot and run, in seconds; 0: for any time.
type Deadlines struct {
	HeldDeadline, IdleDeadline, RunDeadline int64
}

// The attributes with the deadlines, in seconds.
const (
	attrHeldDeadline = "HTCJobHeldDeadline"
	attrIdleDeadline = "HTCJobIdleDeadline"
	attrRunDeadline  = "HTCJobRunDeadline"
)

// The reasons for which a job has failed that was removed because it was held, or ran, beyond its deadline.
const (
	ReasonHeldTooLong = "HeldDeadlineExceeded"
	ReasonRanTooLong  = "RunDeadlineExceeded"
	ReasonIdleTooLong = "IdleDeadlineExceeded"
)

// holdRanTooLong is the code with which HTCondor holds a job that has run for longer than its runLimit (23.9, 25.14).
const holdRanTooLong = 47

// runLimit is the submit command by which HTCondor limits an execution: it holds the job then. The transfer of files does not count, unlike with allowed_job_duration, and the next
// execution counts anew. It passes over an execution that begins in the second in which its shadow did, as most do on a
// fast machine, or that a schedd has found again after a restart (23.9: the shadow holds only what has begun after
// itself): PeriodicRemove ends those.
const runLimit = "allowed_execute_duration"

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

// keepDeadlines removes jobs that were held or idle, or ran, for too long. Those that HTCondor holds for it no condition of
// a user's releases.
func (o JobOptions) keepDeadlines(options []option) (_ []option, err error) {
	if release, there := value(options, "periodic_release"); there && o.RunDeadline > 0 {
		if release, err = joined("&&", fmt.Sprintf("HoldReasonCode =!= %d", holdRanTooLong), release); err != nil {
			return nil, Refusal("periodic_release: %w", err)
		}
		options = replace(options, "periodic_release", release)
	}
	if late := o.Late(); late != "" {
		return orElse(options, "periodic_remove", late)
	}
	return options, nil
}

// Late returns a condition that is true for a job past one of its deadlines, "" without any. A job that waits for its
// files to be spooled does not count as held, nor one whose pool is suspended.
func (d Deadlines) Late() string {
	var conditions []string
	if d.RunDeadline > 0 {
		conditions = append(
			conditions,
			fmt.Sprintf("JobStatus == %d && HoldReasonCode == %d", Held, holdRanTooLong),
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
				Held, holdCodeSpooling, notHeldByPool, d.HeldDeadline),
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

// deadlineAttributes returns what Job.Outcome needs of the deadlines.
func deadlineAttributes(d Deadlines) (all []option) {
	for _, a := range []struct {
		name    string
		seconds int64
	}{{attrHeldDeadline, d.HeldDeadline}, {attrIdleDeadline, d.IdleDeadline}, {attrRunDeadline, d.RunDeadline}} {
		if a.seconds > 0 {
			all = append(all, option{"My." + a.name, strconv.FormatInt(a.seconds, 10)})
		}
	}
	return all
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
	return j.RunDeadline > 0 && j.Status == Removed && j.LastStatus == Held && j.LastHoldReasonCode == holdRanTooLong &&
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
