package kube

import (
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// situation is everything that is known about one HTCJob when a decision is made.
type situation struct {
	job      *v1alpha1.HTCJob
	run      *ledger.Run // the newest, nil when nothing was ever begun
	counts   ledger.Counts
	failures []ledger.Proc // the first few that failed
	held     *ledger.Proc  // one that is held
	orphans  bool          // the ledger has runs of an older object of this name

	stopped   int  // how many of the failed ones htcd itself ended, for run.Stop
	unfetched bool // output is still to be fetched
	output    ledger.OutputCounts
	now       time.Time
}

type action string

const (
	actRest    action = "rest"    // nothing to do for HTCondor
	actSubmit  action = "submit"  // begin this attempt
	actRecover action = "recover" // find out by the tag what became of this attempt
	actRestore action = "restore" // write down again what the status says of a run that the ledger has lost
	actRemove  action = "remove"  // take everything out of HTCondor, then let the object go
	actSuspend action = "suspend" // take the jobs of this attempt out of HTCondor, because of spec.suspend
	actExpire  action = "expire"  // the same with those that have not ended, because of spec.activeDeadlineSeconds
)

// decision is what is to be done about an HTCJob. Attempt is meant by all that begin, look for or stop one.
type decision struct {
	action  action
	attempt int
}

// plan decides what HTCondor is to be asked for, by the first rule that fits.
func plan(s situation) decision {
	job, run := s.job, s.run
	ours := slices.Contains(job.Finalizers, v1alpha1.Finalizer)
	switch {
	// Others may hold a deleted object back; without our finalizer we are through with it.
	case job.DeletionTimestamp != nil && !ours:
		return decision{action: actRest}
	case job.DeletionTimestamp != nil:
		return decision{action: actRemove}

	// The ledger knows nothing, but the object speaks of a run: the ledger was lost. What the object says was sent, or
	// refused, is not asked about, so that it is never sent again; only an open intent is.
	case run == nil && job.Status.Attempt > 0 && toldApart(job.Status):
		return decision{action: actRestore}
	case run == nil && job.Status.Attempt > 0:
		return decision{actRecover, int(job.Status.Attempt)}
	// The finalizer is set just before the intent is written: htcd ended between the two, or the ledger was lost.
	case run == nil && ours:
		return decision{actRecover, 1}
	case withheld(s):
		return decision{action: actRest}
	case run == nil:
		return decision{actSubmit, 1}

	case run.State == ledger.Intent:
		return decision{actRecover, run.Attempt}
	// What htcd began to stop it stops, whatever was edited since.
	case stopping(s) && run.Stop == crosscheck.StopSuspended:
		return decision{actSuspend, run.Attempt}
	case stopping(s):
		return decision{actExpire, run.Attempt}
	case job.Spec.Suspend && s.counts.Active > 0:
		return decision{actSuspend, run.Attempt}
	case overdue(s):
		return decision{actExpire, run.Attempt}
	case due(s):
		return next(run)
	}
	return decision{action: actRest}
}

// toldApart tells whether a status says enough of its run to restore it: it was sent, or has ended without.
func toldApart(status v1alpha1.HTCJobStatus) bool {
	return status.ClusterID > 0 || status.Phase.Terminal() || status.Phase == v1alpha1.PhaseSuspended
}

// due tells whether the attempt after the present one, or the first, is to be begun.
func due(s situation) bool {
	switch run := s.run; {
	case run == nil:
		return s.job.Status.Attempt == 0
	// A cluster whose files never arrived was taken out before it could run anything, or spec.suspend had it removed.
	case run.State == ledger.Removed:
		return true
	// What was refused is refused again until the spec changes.
	case run.State == ledger.Refused:
		return changed(s.job, run)
	// A changed spec runs again, but only after every job of the present attempt has ended.
	case run.State == ledger.Submitted && s.counts.Active == 0:
		return !stopping(s) && changed(s.job, run)
	}
	return false
}

// withheld tells whether spec.suspend keeps back an attempt that is due.
func withheld(s situation) bool {
	return s.job.Spec.Suspend && due(s) && !(s.run == nil && slices.Contains(s.job.Finalizers, v1alpha1.Finalizer))
}

// changed tells whether a run was not made of what the HTCJob now says, or is to be repeated. Edits of suspend and its
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
func next(run *ledger.Run) decision {
	if restored(run) {
		return decision{actRecover, run.Attempt + 1}
	}
	return decision{actSubmit, run.Attempt + 1}
}

// restored tells a run that was written down again after the ledger had been lost: its token was lost for good.
func restored(run *ledger.Run) bool { return run.Deferred && len(run.TokenHash) == 0 }
