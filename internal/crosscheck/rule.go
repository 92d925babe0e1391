package crosscheck

import (
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// LostAfter is the minimum time between two successful answers of queue and history without a trace of a job before it
// counts as lost.
const LostAfter = 30 * time.Second

// Settling is how long HTCondor's queue may lag behind a job's callback. It also covers clock differences.
const Settling = 10 * time.Second

// Apply is the only rule by which a proc's row changes. It is pure and idempotent, and does not depend on the order in
// which sources report:
//
//  1. A callback ends an open proc and says nothing about an ended one.
//  2. HTCondor's report of the end overrules a callback's.
//  3. A proc that a callback ended and that HTCondor then starts again, or holds or queues, is open again.
//  4. A proc absent twice, with enough time between, is lost, or removed if htcd stops the run; one that a callback
//     ended stays ended, and HTCondor will say no more about it. Any other answer restarts the count.
//  5. A proc that ended in any other way stays ended, unless HTCondor, asked after the row was read, still has the job:
//     then the row was not HTCondor's word but was edited by somebody.
//  6. A job's report of its start says that an open proc runs that waits, as far as is known, and nothing else. What
//     HTCondor shows next overrules it.
//  7. What a job tells of its standard error is kept until its next execution, which HTCondor shows by a job that is
//     idle again or was released. That a job still runs does not clear it: HTCondor shows that for some seconds after
//     the script has ended. Nor does what HTCondor showed before the job told it.
func (o Observation) Apply(p ledger.Proc) (ledger.Proc, bool) {
	before := p
	switch ended := p.Status != ledger.StatusOpen; {
	case o.start:
		if waits := p.JobStatus == 0 || p.JobStatus == int(condor.Idle); !ended && waits {
			p.JobStatus = int(condor.Running)
		}
	case o.wrote:
		if !ended {
			p.Stderr = o.stderr
		}
	case o.absent && ended && p.Source != FromCallback:
	case o.absent && p.Absent == 0:
		p.Absent, p.Checked = 1, o.at
	case o.absent && o.at.Sub(p.Checked) < o.lostAfter:
	case o.absent && ended:
		p.Source = o.source
		if p.ExitCode != nil || p.Status == ledger.StatusSucceeded {
			p.JobStatus = int(condor.Completed) // it ran to its end: its output is in place, or cannot be fetched
		}
		p.Absent++
	case o.absent:
		p = o.end(p, ledger.StatusFailed, vanished(o.stop))
		p.Absent++

	case o.source == FromCallback && ended:
	case o.outcome.State == condor.OutcomeSucceeded:
		p = o.end(p, ledger.StatusSucceeded, o.outcome)
	case o.outcome.State != condor.OutcomeOpen:
		p = o.end(p, ledger.StatusFailed, o.outcome)

	case ended && !o.denies(p) && (p.Source == FromHTCondor || !o.resumes(p)):
		if p.Source == FromCallback {
			p.Absent = 0
		}
	default:
		again := ended || o.jobStatus == condor.Idle || p.Reason != ""
		if again && o.hold == "" && (ended || p.Stderr == o.told) {
			p.Stderr = ""
		}
		p.Status, p.JobStatus, p.Absent, p.Source = ledger.StatusOpen, int(o.jobStatus), 0, o.source
		p.ExitCode, p.Signal, p.Reason, p.Message = nil, nil, "", ""
		p.Fetched, p.Usage = ledger.NotFetched, ""
		if o.hold != "" {
			p.Reason, p.Message = reasonHeld, o.hold
			if o.byPool {
				p.Reason = ReasonPoolSuspended
			}
		}
		if ended {
			p.Changed = o.at
		}
	}
	return p, p != before && !Same(p, before)
}

// vanished is the end of a job that HTCondor no longer shows anywhere. In a run that htcd stops it was removed, like
// those the history still shows: the history is limited, and a large cluster removed at once may exceed it.
func vanished(stop string) condor.Outcome {
	const nowhere = "neither the queue nor the history of the schedd shows this job any more"
	if stop != "" {
		return condor.Outcome{Reason: stop, Message: removeReasons[stop] + "; " + nowhere}
	}
	return condor.Outcome{Reason: ReasonLost, Message: nowhere}
}

// end closes a proc. A verdict that merely confirms the present one keeps its time.
func (o Observation) end(p ledger.Proc, status ledger.Status, outcome condor.Outcome) ledger.Proc {
	if p.Status != status {
		p.Changed = o.at
	}
	p.Status, p.JobStatus, p.Absent, p.Source = status, int(o.jobStatus), 0, o.source
	p.ExitCode, p.Signal, p.Reason, p.Message = outcome.ExitCode, outcome.Signal, outcome.Reason, outcome.Message
	p.Usage = o.usage
	if o.stderr != "" || o.source == FromCallback && status == ledger.StatusSucceeded {
		p.Stderr = o.stderr
	}
	return p
}

// resumes reports whether HTCondor has resumed a job that its callback had ended. After the callback the queue still
// shows a job as running for a second or two; that is no contradiction.
func (o Observation) resumes(p ledger.Proc) bool {
	switch o.jobStatus {
	case condor.Idle, condor.Held:
		return o.at.Sub(p.Changed) > Settling
	case condor.Running:
		return o.started.Add(-o.ahead).After(p.Changed.Add(Settling))
	}
	return false
}

// denies reports whether HTCondor's queue has a job whose row said, before HTCondor was asked and not on a callback's
// word, that it had ended.
func (o Observation) denies(p ledger.Proc) bool {
	return o.read != nil && p.Source != FromCallback && o.jobStatus != 0 && (p == *o.read || Same(p, *o.read))
}

// Same compares two states of a proc, and unlike == the values behind the pointers.
func Same(p, q ledger.Proc) bool {
	equal := func(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }
	pointersEqual := equal(p.ExitCode, q.ExitCode) && equal(p.Signal, q.Signal)
	p.ExitCode, p.Signal, q.ExitCode, q.Signal = nil, nil, nil, nil
	return pointersEqual && p == q
}
