package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
)

// Who says something about a proc: the source column of the ledger.
const (
	fromCallback   = "callback"
	fromCrosscheck = "crosscheck"
)

// Reasons beside those of schedd.Outcome.
const (
	reasonRemoved = "Removed"
	reasonLost    = "Lost"
)

// lostAfter is how far apart two successful answers of queue and history without a trace of a job must be before it
// counts as lost.
const lostAfter = 30 * time.Second

// observation is what one source says about one proc.
type observation struct {
	source    string
	at        time.Time
	absent    bool   // a successful answer of queue and history showed no such job; of what is below only stop is set
	stop      string // why htcd has this run's jobs removed, "" when it does not
	jobStatus schedd.JobStatus
	outcome   schedd.Outcome
	hold      string    // why it is held
	started   time.Time // when HTCondor last started it

	read     *ledger.Proc // the row as it stood before HTCondor was asked; nil: not known
	evidence string       // for people: who showed what
}

// observed is what an ad says about its proc.
func observed(j schedd.Job, at time.Time) observation {
	o := observation{source: fromCrosscheck, at: at, jobStatus: j.Status, outcome: j.Outcome()}
	if j.Spooling() {
		o.jobStatus = 0 // held only until its files have arrived: nobody needs to act
	}
	if j.Held() {
		o.hold = j.HoldReason + holdCode(j)
		if j.HoldReasonCode == schedd.HoldTooMuchOutput {
			o.hold += "; the site bounds what a job may leave behind (--max-output): leave less, or name what is wanted in transfer_output_files"
		}
	}
	if stop := stopOf(j); stop != "" && o.outcome.State == schedd.OutcomeRemoved {
		o.outcome.Reason = stop
	}
	if j.JobStartDate > 0 {
		o.started = time.Unix(j.JobStartDate, 0)
	}
	return o
}

// asBefore tells whether an ad says of an open proc in that state, of which nothing else is known, what is known already:
// transition would change nothing.
func (o observation) asBefore(was schedd.JobStatus) bool {
	return o.outcome.State == schedd.OutcomeOpen && o.hold == "" && o.jobStatus == was
}

// transition is the one rule by which a proc's row changes. It is pure, idempotent, and does not care for the order in
// which sources speak:
//
//  1. A callback ends an open proc and says nothing about an ended one.
//  2. What HTCondor says of the end stands above what a callback said.
//  3. A proc that a callback ended and that HTCondor then starts again, or holds or queues, is open again.
//  4. Absent twice, apart in time, is lost, or removed where htcd stops the run; what a callback ended stays ended, and
//     HTCondor will say no more of it. Any other answer restarts the count.
//  5. What ended otherwise stays so, unless the row was read, then HTCondor asked, and HTCondor still has the job: then
//     it was not HTCondor who said so, but somebody's hand.
func transition(p ledger.Proc, o observation) (ledger.Proc, bool) {
	before := p
	switch ended := p.Status != ledger.StatusOpen; {
	case o.absent && ended && p.Source != fromCallback:
	case o.absent && p.Absent == 0:
		p.Absent, p.Checked = 1, o.at
	case o.absent && o.at.Sub(p.Checked) < lostAfter:
	case o.absent && ended:
		p.Source = o.source
		if p.ExitCode != nil || p.Status == ledger.StatusSucceeded {
			p.JobStatus = int(schedd.Completed) // it ran to its end: what was fetched is in its place, or cannot be had
		}
		p.Absent++
	case o.absent:
		p = end(p, o, ledger.StatusFailed, vanished(o.stop))
		p.Absent++

	case o.source == fromCallback && ended:
	case o.outcome.State == schedd.OutcomeSucceeded:
		p = end(p, o, ledger.StatusSucceeded, o.outcome)
	case o.outcome.State != schedd.OutcomeOpen:
		p = end(p, o, ledger.StatusFailed, o.outcome)

	case ended && !denied(p, o) && (p.Source == fromCrosscheck || !again(p, o)):
		if p.Source == fromCallback {
			p.Absent = 0
		}
	default:
		p.Status, p.JobStatus, p.Absent, p.Source = ledger.StatusOpen, int(o.jobStatus), 0, o.source
		p.ExitCode, p.Signal, p.Reason, p.Message = nil, nil, "", ""
		p.Fetched, p.Stderr = ledger.NotFetched, ""
		if o.hold != "" {
			p.Reason, p.Message = "Held", o.hold
		}
		if ended {
			p.Changed = o.at
		}
	}
	return p, p != before && !same(p, before)
}

// vanished is the end of a job that HTCondor shows nowhere any more. Of a run that htcd stops it was removed, like those that
// the history still shows: it keeps only so many, and a large cluster that is removed at once may be more.
func vanished(stop string) schedd.Outcome {
	const nowhere = "neither the queue nor the history of the schedd shows this job any more"
	if stop != "" {
		return schedd.Outcome{Reason: stop, Message: removeReasons[stop] + "; " + nowhere}
	}
	return schedd.Outcome{Reason: reasonLost, Message: nowhere}
}

// end closes a proc. A verdict that only confirms the standing one keeps its time.
func end(p ledger.Proc, o observation, status ledger.Status, outcome schedd.Outcome) ledger.Proc {
	if p.Status != status {
		p.Changed = o.at
	}
	p.Status, p.JobStatus, p.Absent, p.Source = status, int(o.jobStatus), 0, o.source
	p.ExitCode, p.Signal, p.Reason, p.Message = outcome.ExitCode, outcome.Signal, outcome.Reason, outcome.Message
	return p
}

// again tells whether HTCondor has taken up a job that its callback had ended. Between the callback and the end in the
// queue a job still shows as running for a second or two; that is no contradiction.
func again(p ledger.Proc, o observation) bool {
	switch o.jobStatus {
	case schedd.Idle, schedd.Held:
		return o.at.Sub(p.Changed) > settling
	case schedd.Running:
		return o.started.After(p.Changed.Add(settling))
	}
	return false
}

// denied tells whether HTCondor has a job in its queue that had stood as ended, by no callback's word, before it was asked.
func denied(p ledger.Proc, o observation) bool {
	return o.read != nil && p.Source != fromCallback && o.jobStatus != 0 && (p == *o.read || same(p, *o.read))
}

// settling is how long HTCondor may take from a job's callback to what its queue says. It also covers clocks that differ.
const settling = 10 * time.Second

// same compares what p != before cannot: the numbers behind the pointers.
func same(p, q ledger.Proc) bool {
	equal := func(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }
	pointersEqual := equal(p.ExitCode, q.ExitCode) && equal(p.Signal, q.Signal)
	p.ExitCode, p.Signal, q.ExitCode, q.Signal = nil, nil, nil, nil
	return pointersEqual && p == q
}

// observe applies what was said about procs of one run, in the caller's transaction, and settles the run. It returns
// the rows that changed, each as it was and as it is.
func observe(tx *ledger.Tx, uid string, attempt int, said map[int]observation, at time.Time, checked bool) ([]change, error) {
	var changes []change
	rows, err := rowsOf(tx, uid, attempt, slices.Sorted(maps.Keys(said)))
	if err != nil {
		return nil, err
	}
	for _, was := range rows {
		is, changed := transition(was, said[was.Proc])
		if !changed {
			continue
		}
		if err := tx.UpdateProc(is); err != nil {
			return nil, err
		}
		changes = append(changes, change{was, is})
	}
	run, err := tx.Run(uid, attempt)
	if err != nil {
		return nil, err
	}
	_, err = settle(tx, run, at, checked)
	return changes, err
}

// rowsOf reads rows of one run, in order: those that stand close together at once.
func rowsOf(tx *ledger.Tx, uid string, attempt int, procs []int) (rows []ledger.Proc, err error) {
	if n := len(procs); n > 1 && procs[n-1]-procs[0] < 2*n {
		rows, err = tx.Procs(uid, attempt, ledger.ProcFilter{From: procs[0], Limit: procs[n-1] - procs[0] + 1})
		rows = slices.DeleteFunc(rows, func(p ledger.Proc) bool {
			_, wanted := slices.BinarySearch(procs, p.Proc)
			return !wanted
		})
		if err == nil && len(rows) < n {
			err = fmt.Errorf("procs of run %s attempt %d: %w", uid, attempt, ledger.ErrNotFound)
		}
		return rows, err
	}
	for _, proc := range procs {
		p, err := tx.Proc(uid, attempt, proc)
		if err != nil {
			return nil, err
		}
		rows = append(rows, p)
	}
	return rows, nil
}

// observeRow is observe for one row of a run, both as they were just read in the same transaction. It returns how many of the
// run's procs are open.
func observeRow(tx *ledger.Tx, run ledger.Run, was ledger.Proc, o observation) (open int, err error) {
	if is, changed := transition(was, o); changed {
		if err := tx.UpdateProc(is); err != nil {
			return 0, err
		}
	}
	return settle(tx, run, o.at, false)
}

// change is one row as it was and as it is.
type change struct{ was, is ledger.Proc }

// settle brings the run's own row, which was just read, in line with its procs. It returns how many of these are open.
func settle(tx *ledger.Tx, run ledger.Run, at time.Time, checked bool) (open int, err error) {
	before := run
	counts, err := tx.Counts(run.UID, run.Attempt)
	if err != nil {
		return 0, err
	}
	switch {
	case counts.Active > 0:
		run.Ended = time.Time{}
	case run.Ended.IsZero():
		run.Ended = at
	}
	if checked {
		run.Checked = at
		unconfirmed, err := tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Unconfirmed: true, Limit: 1})
		if err != nil {
			return 0, err
		}
		run.Confirmed = len(unconfirmed) == 0
	}
	if run.Ended.Equal(before.Ended) && run.Checked.Equal(before.Checked) && run.Confirmed == before.Confirmed {
		return counts.Active, nil
	}
	return counts.Active, tx.UpdateRun(run)
}

// Record takes a job's own word about its end. It returns nil only when the ledger has it durably, and implements
// notify.Recorder.
func (c *Controller) Record(ctx context.Context, callback notify.Callback, tokenHash []byte) error {
	var uid string
	var check, over bool
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		uid, check, over = "", false, false
		proc, err := tx.ProcByJobID(callback.Namespace, callback.Name, callback.JobID, tokenHash)
		if errors.Is(err, ledger.ErrNotFound) {
			return c.unknownJob(tx, callback, tokenHash)
		}
		if err != nil {
			return err
		}
		run, err := tx.Run(proc.UID, proc.Attempt)
		if err != nil {
			return err
		}
		if !notify.Match(run.TokenHash, tokenHash) {
			// Another schedd may have given the same number to an attempt whose cluster is not recorded yet.
			if err := c.unknownJob(tx, callback, tokenHash); !errors.Is(err, notify.ErrUnknownJob) {
				return err
			}
			return notify.ErrForbidden
		}
		uid = run.UID
		// Of a run that is being stopped, a job says as its last word how it was killed.
		if run.Deferred || run.Stop != "" {
			check = true
			return nil
		}
		open, err := observeRow(tx, run, proc, said(callback, c.Now()))
		over = open == 0
		return err
	})
	if err != nil {
		return err
	}
	if check {
		c.checks.AddAfter(uid, firstRetry)
		return nil
	}
	// Output is fetched when HTCondor says that the job is over.
	if over {
		c.checks.AddAfter(uid, firstRetry)
	}
	// Counts are written once a second; that many looks in between would be in vain.
	key := callback.Namespace + "/" + callback.Name
	if wait := c.pace.wait(key, c.Now()); wait > 0 && !over {
		c.queue.AddAfter(key, wait)
	} else {
		c.queue.Add(key)
	}
	return nil
}

// said is what a callback says about its proc.
func said(callback notify.Callback, at time.Time) observation {
	code := callback.Retcode
	o := observation{source: fromCallback, at: at, outcome: schedd.Outcome{
		State: schedd.OutcomeSucceeded, Reason: "Completed", ExitCode: &code, Message: schedd.ExitMessage(code),
	}}
	if code != 0 {
		o.outcome.State, o.outcome.Reason = schedd.OutcomeFailed, "ExitCode"
	}
	return o
}

// errNotRecorded answers a job that was faster than the record of its own submission.
var errNotRecorded = errors.New("the submission of this job is not recorded yet")

// unknownJob tells a job that nobody sent from one whose cluster is not recorded yet: that one shall try again.
func (c *Controller) unknownJob(tx *ledger.Tx, callback notify.Callback, tokenHash []byte) error {
	runs, err := tx.Runs(ledger.RunFilter{Namespace: callback.Namespace, Name: callback.Name, State: ledger.Intent})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if notify.Match(run.TokenHash, tokenHash) {
			return errNotRecorded
		}
	}
	return notify.ErrUnknownJob
}
