package kube

import (
	"slices"

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
}

type action string

const (
	actRest    action = "rest"    // nothing to do for HTCondor
	actSubmit  action = "submit"  // begin this attempt
	actRecover action = "recover" // find out by the tag what became of this attempt
	actRestore action = "restore" // write down again what the status says of a run that the ledger has lost
	actRemove  action = "remove"  // take everything out of HTCondor, then let the object go
)

// decision is what is to be done about an HTCJob. Attempt is meant by actSubmit and actRecover.
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
	case run == nil && job.Status.Attempt > 0 && (job.Status.ClusterID > 0 || job.Status.Phase.Terminal()):
		return decision{action: actRestore}
	case run == nil && job.Status.Attempt > 0:
		return decision{actRecover, int(job.Status.Attempt)}
	// The finalizer is set just before the intent is written: htcd ended between the two, or the ledger was lost.
	case run == nil && ours:
		return decision{actRecover, 1}
	case run == nil:
		return decision{actSubmit, 1}

	case run.State == ledger.Intent:
		return decision{actRecover, run.Attempt}
	// A cluster whose files never arrived was taken out before it could run anything.
	case run.State == ledger.Removed:
		return next(run)
	// What was refused is refused again until the spec changes.
	case run.State == ledger.Refused && run.Generation == job.Generation:
		return decision{action: actRest}
	case run.State == ledger.Refused:
		return next(run)

	// A changed spec runs again, but only after every job of the present attempt has ended.
	case s.counts.Active == 0 && run.Generation != job.Generation:
		return next(run)
	}
	return decision{action: actRest}
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
