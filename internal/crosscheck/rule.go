package crosscheck

import (
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// LostAfter is how far apart two successful answers of queue and history without a trace of a job must be before it
// counts as lost.
const LostAfter = 30 * time.Second

// Settling is how long HTCondor may take from a job's callback to what its queue says. It also covers clocks that differ.
const Settling = 10 * time.Second

// apply is the one rule by which a proc's row changes. It is pure, idempotent, and does not depend on the order in which
// sources speak:
//
//  1. A callback ends an open proc and says nothing about an ended one.
//  2. What HTCondor says of the end overrules what a callback said.
//  3. A proc that a callback ended and that HTCondor then starts again, or holds or queues, is open again.
//  4. Absent twice, apart in time, is lost, or removed where htcd stops the run; what a callback ended stays ended, and
//     HTCondor will say no more of it. Any other answer restarts the count.
//  5. What ended otherwise stays so, unless the row was read, then HTCondor asked, and HTCondor still has the job: then
//     it was not HTCondor who said so, but somebody who edited the row.
func (o Observation) apply(p ledger.Proc) (ledger.Proc, bool) {
	before := p
	switch ended := p.Status != ledger.StatusOpen; {
	case o.absent && ended && p.Source != FromCallback:
	case o.absent && p.Absent == 0:
		p.Absent, p.Checked = 1, o.at
	case o.absent && o.at.Sub(p.Checked) < LostAfter:
	case o.absent && ended:
		p.Source = o.source
		if p.ExitCode != nil || p.Status == ledger.StatusSucceeded {
			p.JobStatus = int(schedd.Completed) // it ran to its end: what was fetched is in its place, or cannot be had
		}
		p.Absent++
	case o.absent:
		p = o.end(p, ledger.StatusFailed, vanished(o.stop))
		p.Absent++

	case o.source == FromCallback && ended:
	case o.outcome.State == schedd.OutcomeSucceeded:
		p = o.end(p, ledger.StatusSucceeded, o.outcome)
	case o.outcome.State != schedd.OutcomeOpen:
		p = o.end(p, ledger.StatusFailed, o.outcome)

	case ended && !o.denies(p) && (p.Source == FromHTCondor || !o.resumes(p)):
		if p.Source == FromCallback {
			p.Absent = 0
		}
	default:
		p.Status, p.JobStatus, p.Absent, p.Source = ledger.StatusOpen, int(o.jobStatus), 0, o.source
		p.ExitCode, p.Signal, p.Reason, p.Message = nil, nil, "", ""
		p.Fetched, p.Stderr = ledger.NotFetched, ""
		if o.hold != "" {
			p.Reason, p.Message = reasonHeld, o.hold
		}
		if ended {
			p.Changed = o.at
		}
	}
	return p, p != before && !same(p, before)
}

// vanished is the end of a job that HTCondor shows nowhere any more. In a run that htcd stops it was removed, like those that
// the history still shows: the history keeps only so many, and a large cluster that is removed at once may be more.
func vanished(stop string) schedd.Outcome {
	const nowhere = "neither the queue nor the history of the schedd shows this job any more"
	if stop != "" {
		return schedd.Outcome{Reason: stop, Message: removeReasons[stop] + "; " + nowhere}
	}
	return schedd.Outcome{Reason: ReasonLost, Message: nowhere}
}

// end closes a proc. A verdict that only confirms the present one keeps its time.
func (o Observation) end(p ledger.Proc, status ledger.Status, outcome schedd.Outcome) ledger.Proc {
	if p.Status != status {
		p.Changed = o.at
	}
	p.Status, p.JobStatus, p.Absent, p.Source = status, int(o.jobStatus), 0, o.source
	p.ExitCode, p.Signal, p.Reason, p.Message = outcome.ExitCode, outcome.Signal, outcome.Reason, outcome.Message
	return p
}

// resumes reports whether HTCondor has taken up a job that its callback had ended. Between the callback and the end in the
// queue a job still shows as running for a second or two; that is no contradiction.
func (o Observation) resumes(p ledger.Proc) bool {
	switch o.jobStatus {
	case schedd.Idle, schedd.Held:
		return o.at.Sub(p.Changed) > Settling
	case schedd.Running:
		return o.started.After(p.Changed.Add(Settling))
	}
	return false
}

// denies reports whether HTCondor has a job in its queue whose row said, before it was asked and by no callback's word, that
// the job had ended.
func (o Observation) denies(p ledger.Proc) bool {
	return o.read != nil && p.Source != FromCallback && o.jobStatus != 0 && (p == *o.read || same(p, *o.read))
}

// same compares what p != before cannot: the numbers behind the pointers.
func same(p, q ledger.Proc) bool {
	equal := func(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }
	pointersEqual := equal(p.ExitCode, q.ExitCode) && equal(p.Signal, q.Signal)
	p.ExitCode, p.Signal, q.ExitCode, q.Signal = nil, nil, nil, nil
	return pointersEqual && p == q
}
