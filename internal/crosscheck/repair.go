package crosscheck

import (
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Repair is a kind of repair.
type Repair string

// The kinds of repairs.
const (
	// LostCallback: a job ended with a return code, but only HTCondor said so, not the job.
	LostCallback Repair = "lost_callback"
	// SilentEnd: a job ended in a way that it cannot or need not report: it was killed by a signal, was removed, or
	// only HTCondor knows whether it was the last try. This is not a fault.
	SilentEnd Repair = "silent_end"
	// Contradicted: HTCondor reports a different end than the ledger did.
	Contradicted Repair = "contradicted"
	// Reopened: HTCondor still has a job that had counted as ended.
	Reopened Repair = "reopened"
	// Vanished: neither queue nor history shows a job any more.
	Vanished Repair = "vanished"
	// Unstaged: the schedd never received a cluster's files; it is sent as a new attempt.
	Unstaged Repair = "unstaged"
	// HalfSpooled: a cluster that was never completely spooled is removed.
	HalfSpooled Repair = "half_spooled"
	// Adopted: a cluster whose submission was interrupted was found by its tag.
	Adopted Repair = "adopted"
)

// Repairs lists all kinds.
var Repairs = []Repair{LostCallback, SilentEnd, Contradicted, Reopened, Vanished, Unstaged, HalfSpooled, Adopted}

// RepairOf returns the kind of repair that a change on HTCondor's word is; ok is false if the change neither ended the
// proc nor reopened it.
func RepairOf(run ledger.Run, r Change) (kind Repair, ok bool) {
	switch {
	case r.Was.Status == r.Is.Status:
		return "", false
	case r.Is.Status == ledger.StatusOpen:
		return Reopened, true
	case r.Was.Status != ledger.StatusOpen:
		return Contradicted, true
	case r.Is.Reason == ReasonLost:
		return Vanished, true
	// its script may have ended, but a job that is to be held reports nothing
	case r.Is.Reason == condor.ReasonHeldTooLong:
		return SilentEnd, true
	case r.Is.ExitCode != nil && !run.Deferred && run.Stop == "":
		return LostCallback, true
	}
	return SilentEnd, true
}

// Alike is what was repaired alike in the rows of one run.
type Alike struct {
	Kind    Repair
	First   Change // the first row; all have its statuses before and after
	Numbers []int  // of the procs or nodes; none if no row was repaired
}

// AddTo adds the repair of one row to those of its run.
func AddTo(all []Alike, kind Repair, number int, change Change) []Alike {
	i := slices.IndexFunc(all, func(a Alike) bool {
		return a.Kind == kind && a.First.Was.Status == change.Was.Status && a.First.Is.Status == change.Is.Status
	})
	if i < 0 {
		i, all = len(all), append(all, Alike{Kind: kind, First: change})
	}
	all[i].Numbers = append(all[i].Numbers, number)
	return all
}
