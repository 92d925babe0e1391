package kube

import (
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Told hears what happens, so that somebody can count it. Its fields may be nil; none may wait for anything.
type Told struct {
	// Repaired: something was put right that went on unseen, or was broken off.
	Repaired func(Repair)
	// Passed: one pass over the runs at a place, a cross-check or a refresh, has ended.
	Passed func(pass string, place schedd.Place, took time.Duration, err error)
	// Unread: the ads of so many jobs could not be had or read.
	Unread func(jobs int)
	// Fetched: the output of so many procs is here.
	Fetched func(procs int, bytes int64)
	// GaveUp: the output of so many procs cannot be had.
	GaveUp func(procs int)
	// FetchFailed: a fetch has failed and is tried again.
	FetchFailed func(reason string)
}

// Repair is a kind of thing that is put right.
type Repair string

// The kinds of repairs.
const (
	// LostCallback: a job ended by a return code, and only HTCondor said so, not the job.
	LostCallback Repair = "lost_callback"
	// SilentEnd: a job ended in a way in which it cannot or need not say so: by a signal, removed, or where HTCondor alone
	// knows whether it was the last try. It happens without any fault.
	SilentEnd Repair = "silent_end"
	// Contradicted: HTCondor says of the end something else than stood in the ledger.
	Contradicted Repair = "contradicted"
	// Reopened: HTCondor still has a job that stood as ended.
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

// repairOf says what kind of repair a change is that HTCondor's word brought about; ok is false when the proc neither
// ended by it nor turned out to go on.
func repairOf(run ledger.Run, r change) (kind Repair, ok bool) {
	switch {
	case r.was.Status == r.is.Status:
		return "", false
	case r.is.Status == ledger.StatusOpen:
		return Reopened, true
	case r.was.Status != ledger.StatusOpen:
		return Contradicted, true
	case r.is.Reason == reasonLost:
		return Vanished, true
	case r.is.ExitCode != nil && !run.Deferred && run.Stop == "":
		return LostCallback, true
	}
	return SilentEnd, true
}

func (t Told) repaired(kind Repair) {
	if t.Repaired != nil {
		t.Repaired(kind)
	}
}

func (t Told) passed(pass string, place schedd.Place, took time.Duration, err error) {
	if t.Passed != nil {
		t.Passed(pass, place, took, err)
	}
}

func (t Told) unread(jobs int) {
	if t.Unread != nil {
		t.Unread(jobs)
	}
}

func (t Told) fetched(procs int, bytes int64) {
	if t.Fetched != nil {
		t.Fetched(procs, bytes)
	}
}

func (t Told) gaveUp(procs int) {
	if t.GaveUp != nil {
		t.GaveUp(procs)
	}
}

func (t Told) fetchFailed(reason string) {
	if t.FetchFailed != nil {
		t.FetchFailed(reason)
	}
}
