package crosscheck

import "htc.cern.ch/htcd/internal/ledger"

// Repair is a kind of thing that is put right.
type Repair string

// The kinds of repairs.
const (
	// LostCallback: a job ended by a return code, and only HTCondor said so, not the job.
	LostCallback Repair = "lost_callback"
	// SilentEnd: a job ended in a way in which it cannot or need not say so: by a signal, removed, or where HTCondor alone
	// knows whether it was the last try. It happens without any fault.
	SilentEnd Repair = "silent_end"
	// Contradicted: HTCondor says of the end something else than the ledger did.
	Contradicted Repair = "contradicted"
	// Reopened: HTCondor still has a job that had counted as ended.
	Reopened Repair = "reopened"
	// Vanished: neither queue nor history show a job any more.
	Vanished Repair = "vanished"
	// Unstaged: the schedd never got a cluster's files; it is sent as a new attempt.
	Unstaged Repair = "unstaged"
	// HalfSpooled: a cluster that was never completely spooled is removed.
	HalfSpooled Repair = "half_spooled"
	// Adopted: a cluster whose submission was broken off was found by its tag.
	Adopted Repair = "adopted"
)

// Repairs lists them all.
var Repairs = []Repair{LostCallback, SilentEnd, Contradicted, Reopened, Vanished, Unstaged, HalfSpooled, Adopted}

// repairOf returns what kind of repair a change is that HTCondor's word brought about; ok is false when the proc neither
// ended by it nor turned out to go on.
func repairOf(run ledger.Run, r Change) (kind Repair, ok bool) {
	switch {
	case r.Was.Status == r.Is.Status:
		return "", false
	case r.Is.Status == ledger.StatusOpen:
		return Reopened, true
	case r.Was.Status != ledger.StatusOpen:
		return Contradicted, true
	case r.Is.Reason == ReasonLost:
		return Vanished, true
	case r.Is.ExitCode != nil && !run.Deferred && run.Stop == "":
		return LostCallback, true
	}
	return SilentEnd, true
}
