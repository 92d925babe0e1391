package lifecycle

import (
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// Situation is everything known about one HTCJob when a decision is made.
type Situation struct {
	Job      *v1alpha1.HTCJob
	Run      *ledger.Run // the newest; nil if none was ever begun
	Counts   ledger.Counts
	Failures []ledger.Proc  // the first few failed procs
	Held     *ledger.Proc   // a held proc, if any
	Items    map[int]string // for people: the variables that only a listed proc has, by its number; empty if none has any
	Orphans  bool           // the ledger has runs of an older object of this name

	Stopped   int  // how many of the failed procs htcd itself ended, for Run.Stop
	Unfetched bool // some output has not been fetched yet
	Output    ledger.OutputCounts
	Now       time.Time
}

// Action is something that needs HTCondor or the ledger.
type Action string

// The actions.
const (
	Rest    Action = "rest"    // nothing to do
	Submit  Action = "submit"  // begin this attempt
	Recover Action = "recover" // look up by its tag what became of this attempt
	Restore Action = "restore" // record again a run that the ledger has lost, from the status
	Remove  Action = "remove"  // remove everything from HTCondor, then release the object
	Suspend Action = "suspend" // remove the jobs of this attempt from HTCondor, because of spec.suspend
	Expire  Action = "expire"  // remove those that have not ended, because of spec.activeDeadlineSeconds
)

// Decision is what to do about an HTCJob. Attempt is set for all actions that begin, look for or stop an attempt.
type Decision struct {
	Action  Action
	Attempt int
}

// Plan chooses the next action by the first rule that fits.
func Plan(s Situation) Decision {
	job, run := s.Job, s.Run
	ours := slices.Contains(job.Finalizers, v1alpha1.Finalizer)
	switch {
	// Other finalizers may keep a deleted object; without ours there is nothing left to do.
	case job.DeletionTimestamp != nil && !ours:
		return Decision{Action: Rest}
	case job.DeletionTimestamp != nil:
		return Decision{Action: Remove}

	// The ledger has no run, but the status does: the ledger was lost. An attempt that was sent or refused according to the
	// status is not looked up, so it is never sent again; only an open intent is.
	case run == nil && job.Status.Attempt > 0 && restorable(job.Status):
		return Decision{Action: Restore}
	case run == nil && job.Status.Attempt > 0:
		return Decision{Recover, int(job.Status.Attempt)}
	// The finalizer is set just before the intent is recorded: htcd ended between the two, or the ledger was lost.
	case run == nil && ours:
		return Decision{Recover, 1}
	case withheld(s):
		return Decision{Action: Rest}
	case run == nil:
		return Decision{Submit, 1}

	case run.State == ledger.Intent:
		return Decision{Recover, run.Attempt}
	// A stop that was begun is finished, whatever was edited since.
	case Stopping(s) && run.Stop == crosscheck.StopSuspended:
		return Decision{Suspend, run.Attempt}
	case Stopping(s):
		return Decision{Expire, run.Attempt}
	case job.Spec.Suspend && s.Counts.Active > 0:
		return Decision{Suspend, run.Attempt}
	case overdue(s):
		return Decision{Expire, run.Attempt}
	case due(s):
		return next(run)
	}
	return Decision{Action: Rest}
}

// restorable reports whether a status says enough about its run to restore it: the run was sent, or ended without being sent.
func restorable(status v1alpha1.HTCJobStatus) bool {
	return status.ClusterID > 0 || status.Phase.Terminal() || status.Phase == v1alpha1.PhaseSuspended
}

// Stopping reports whether htcd has begun to stop the run and not yet finished: HTCondor has not said how each of its
// procs ended.
func Stopping(s Situation) bool {
	run := s.Run
	return run != nil && run.State == ledger.Submitted && run.Stop != "" && !(run.Confirmed && run.Stop == crosscheck.StopDeadline)
}

// over reports whether the newest attempt has ended.
func over(s Situation) bool {
	run := s.Run
	return run != nil && (run.State == ledger.Refused || run.State == ledger.Submitted && s.Counts.Active == 0 && !Stopping(s))
}

// due reports whether the first attempt, or the one after the present one, should begin.
func due(s Situation) bool {
	switch run := s.Run; {
	case run == nil:
		return s.Job.Status.Attempt == 0
	// Either its files never arrived and it was removed before it could run anything, or spec.suspend removed it.
	case run.State == ledger.Removed:
		return true
	// A refused spec would be refused again until it changes.
	case run.State == ledger.Refused:
		return changed(s.Job, run)
	// A changed spec runs again, but only after every job of the present attempt has ended.
	case run.State == ledger.Submitted && s.Counts.Active == 0:
		return !Stopping(s) && changed(s.Job, run)
	}
	return false
}

// withheld reports whether spec.suspend holds back an attempt that is due.
func withheld(s Situation) bool {
	return s.Job.Spec.Suspend && due(s) && !(s.Run == nil && slices.Contains(s.Job.Finalizers, v1alpha1.Finalizer))
}

// changed reports whether a run was made from another spec than the present one, or is to be repeated. Edits of suspend and
// similar fields change the generation, but nothing that was sent.
func changed(job *v1alpha1.HTCJob, run *ledger.Run) bool {
	again := job.Rerun()
	return again != "" && again != run.Rerun || edited(job, run)
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

// next begins the attempt after run. If the ledger was lost in between, that attempt may have been sent and lost as well.
func next(run *ledger.Run) Decision {
	if run.Restored {
		return Decision{Recover, run.Attempt + 1}
	}
	return Decision{Submit, run.Attempt + 1}
}
