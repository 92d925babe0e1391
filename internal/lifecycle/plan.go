package lifecycle

import (
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// Situation is everything that is known about one HTCJob when a decision is made.
type Situation struct {
	Job      *v1alpha1.HTCJob
	Run      *ledger.Run // the newest, nil when nothing was ever begun
	Counts   ledger.Counts
	Failures []ledger.Proc // the first few that failed
	Held     *ledger.Proc  // one that is held
	Orphans  bool          // the ledger has runs of an older object of this name

	Stopped   int  // how many of the failed ones htcd itself ended, for Run.Stop
	Unfetched bool // output is still to be fetched
	Output    ledger.OutputCounts
	Now       time.Time
}

// Action is what HTCondor, or the ledger, is needed for.
type Action string

// The actions.
const (
	Rest    Action = "rest"    // nothing to do for HTCondor
	Submit  Action = "submit"  // begin this attempt
	Recover Action = "recover" // find out by the tag what became of this attempt
	Restore Action = "restore" // write down again what the status says of a run that the ledger has lost
	Remove  Action = "remove"  // take everything out of HTCondor, then let the object go
	Suspend Action = "suspend" // take the jobs of this attempt out of HTCondor, because of spec.suspend
	Expire  Action = "expire"  // the same with those that have not ended, because of spec.activeDeadlineSeconds
)

// Decision is what is to be done about an HTCJob. Attempt is meant by all actions that begin, look for or stop one.
type Decision struct {
	Action  Action
	Attempt int
}

// Plan decides what HTCondor is to be asked for, by the first rule that fits.
func Plan(s Situation) Decision {
	job, run := s.Job, s.Run
	ours := slices.Contains(job.Finalizers, v1alpha1.Finalizer)
	switch {
	// Others may hold a deleted object back; without our finalizer we are through with it.
	case job.DeletionTimestamp != nil && !ours:
		return Decision{Action: Rest}
	case job.DeletionTimestamp != nil:
		return Decision{Action: Remove}

	// The ledger knows nothing, but the object speaks of a run: the ledger was lost. What the object says was sent, or
	// refused, is not asked about, so that it is never sent again; only an open intent is.
	case run == nil && job.Status.Attempt > 0 && toldApart(job.Status):
		return Decision{Action: Restore}
	case run == nil && job.Status.Attempt > 0:
		return Decision{Recover, int(job.Status.Attempt)}
	// The finalizer is set just before the intent is written: htcd ended between the two, or the ledger was lost.
	case run == nil && ours:
		return Decision{Recover, 1}
	case withheld(s):
		return Decision{Action: Rest}
	case run == nil:
		return Decision{Submit, 1}

	case run.State == ledger.Intent:
		return Decision{Recover, run.Attempt}
	// What htcd began to stop it stops, whatever was edited since.
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

// toldApart reports whether a status says enough of its run to restore it: it was sent, or has ended without.
func toldApart(status v1alpha1.HTCJobStatus) bool {
	return status.ClusterID > 0 || status.Phase.Terminal() || status.Phase == v1alpha1.PhaseSuspended
}

// Stopping reports whether htcd has begun to stop the run and is not through with it: HTCondor has not said yet how each
// of its procs ended.
func Stopping(s Situation) bool {
	run := s.Run
	return run != nil && run.State == ledger.Submitted && run.Stop != "" && !(run.Confirmed && run.Stop == crosscheck.StopDeadline)
}

// over reports whether the newest attempt has come to its end.
func over(s Situation) bool {
	run := s.Run
	return run != nil && (run.State == ledger.Refused || run.State == ledger.Submitted && s.Counts.Active == 0 && !Stopping(s))
}

// due reports whether the attempt after the present one, or the first, is to be begun.
func due(s Situation) bool {
	switch run := s.Run; {
	case run == nil:
		return s.Job.Status.Attempt == 0
	// A cluster whose files never arrived was taken out before it could run anything, or spec.suspend had it removed.
	case run.State == ledger.Removed:
		return true
	// What was refused is refused again until the spec changes.
	case run.State == ledger.Refused:
		return changed(s.Job, run)
	// A changed spec runs again, but only after every job of the present attempt has ended.
	case run.State == ledger.Submitted && s.Counts.Active == 0:
		return !Stopping(s) && changed(s.Job, run)
	}
	return false
}

// withheld reports whether spec.suspend keeps back an attempt that is due.
func withheld(s Situation) bool {
	return s.Job.Spec.Suspend && due(s) && !(s.Run == nil && slices.Contains(s.Job.Finalizers, v1alpha1.Finalizer))
}

// changed reports whether a run was not made of what the HTCJob now says, or is to be repeated. Edits of suspend and its
// like change the generation, but nothing that was sent.
func changed(job *v1alpha1.HTCJob, run *ledger.Run) bool {
	again := job.Rerun()
	return again != "" && again != run.Rerun || edited(job, run)
}

// edited reports whether a run was made of another spec. The generation alone does not: it restarts from an older one
// when etcd is restored, and then another spec has the same. It decides where an older htcd has left nothing else.
func edited(job *v1alpha1.HTCJob, run *ledger.Run) bool {
	if run.SpecHash == "" {
		return run.Generation != job.Generation
	}
	return run.SpecHash != job.SpecHash()
}

// next begins the attempt after run. Where the ledger was lost in between, that attempt may have been sent and lost too.
func next(run *ledger.Run) Decision {
	if Restored(run) {
		return Decision{Recover, run.Attempt + 1}
	}
	return Decision{Submit, run.Attempt + 1}
}

// Restored reports whether a run was written down again after the ledger had been lost: its token was lost for good.
func Restored(run *ledger.Run) bool { return run.Deferred && len(run.TokenHash) == 0 }
