package lifecycle

import (
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
)

// stage is how far the newest attempt has got.
type stage int

const (
	notBegun stage = iota // there was none
	begun                 // it may or may not have been sent
	active                // some of its jobs have not ended
	draining              // htcd has ended it but for the jobs that run
	stopping              // htcd is ending it; HTCondor has not said yet how each of its jobs ended
	ended                 // all its jobs have ended
	refused               // it cannot be sent
	// its files never arrived and it was removed before it could run anything, or spec.suspend removed it
	withdrawn
)

func (s Situation) stage() stage {
	run := s.Run
	switch {
	case run == nil:
		return notBegun
	case run.State == ledger.Intent:
		return begun
	case run.State == ledger.Refused:
		return refused
	case run.State == ledger.Removed:
		return withdrawn
	case run.Stop != "" && !run.Confirmed && s.Counts.Active > 0 && s.Counts.Active == s.Counts.Running && s.SparesRunning(run.Stop):
		return draining
	case run.Stop != "" && !(run.Confirmed && run.Stop != crosscheck.StopSuspended):
		return stopping
	case s.Counts.Active > 0:
		return active
	}
	return ended
}

// due reports whether the first attempt, or the one after the present one, should begin.
func (s Situation) due() bool {
	switch s.stage() {
	case notBegun:
		return s.Job.Status.Attempt == 0
	case withdrawn:
		return true
	case refused, ended: // a refused spec would be refused again until it changes
		return s.changed()
	}
	return false
}

// over reports whether the newest attempt has ended and is not to be repeated.
func (s Situation) over() bool {
	at := s.stage()
	return (at == ended || at == refused) && !s.due()
}

// withheld reports whether spec.suspend, or a quota, holds back an attempt that is due.
func (s Situation) withheld() bool {
	return s.Waits() && s.due() && !(s.Run == nil && slices.Contains(s.Job.Finalizers, v1alpha1.Finalizer) && !s.Early)
}

// changed reports whether the newest run was made from another spec than the present one, or is to be repeated. Edits
// of suspend and similar fields change the generation, but nothing that was sent.
func (s Situation) changed() bool {
	return s.asksAgain() && s.refusesAgain() == "" || edited(s.Job, s.Run)
}

// edited reports whether a run was made from another spec. The generation alone cannot tell: after a restore of etcd it
// restarts from an older value, and another spec may get the same one. It decides only for runs of an older htcd, which
// recorded no hash.
func edited(job *v1alpha1.HTCJob, run *ledger.Run) bool {
	if run.SpecHash == "" {
		return run.Generation != job.Generation
	}
	return run.SpecHash != job.SpecHash()
}
