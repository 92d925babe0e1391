package lifecycle

import (
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// Situation is everything known about one HTCJob when a decision is made.
type Situation struct {
	Job      *v1alpha1.HTCJob
	Run      *ledger.Run // the newest; nil if none was ever begun
	Counts   ledger.Counts
	Failures []ledger.Proc // the first few failed procs
	Held     *ledger.Proc  // a held proc, if any
	Quota    *Quota        // the word of a quota outside of htcd; nil: it is subject to none
	// for people: the variables that only a listed proc has, by its number; empty if none has any
	Items    map[int]string
	Early    bool        // the finalizer says nothing about a first attempt: it was there from the beginning
	Released bool        // our finalizer was removed from this version of it: the cache does not show that yet
	Orphans  bool        // the ledger has runs of an older object of this name
	Unwanted procset.Set // open procs that are to be removed: see Cancels

	Pool *admission.Share // what its pool leaves to a factory; nil: any number

	// whether the ledger or the status knows the newest run only HTCondor can say: see Whose
	Unasked   bool
	Keep      *v1alpha1.PoolKeep // of the pool it was sent by; nil: none
	Stopped   int                // how many of the failed procs htcd itself ended, for Run.Stop
	Successes []Successes        // for each rule of spec.successPolicy
	Unfetched bool               // some output has not been fetched yet
	Output    ledger.OutputCounts
	Result    *string          // what spec.result names, of all procs; nil: there is none yet
	Written   []ledger.Written // the first outputs that were written elsewhere
	Pushes    ledger.PushCounts
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
	Stop    Action = "stop"    // remove the jobs of this attempt that have not ended from HTCondor
	Cancel  Action = "cancel"  // remove the unwanted jobs of this attempt from HTCondor
	Pace    Action = "pace"    // tell HTCondor how many jobs of this attempt may be there at a time
)

// Decision is what to do about an HTCJob. Attempt is set for all actions that begin, look for or stop an attempt.
type Decision struct {
	Action  Action
	Attempt int
	Reason  string    // why an attempt is stopped: one of crosscheck's stops
	Message string    // the same for the user
	Again   time.Time // when to decide again if nothing happens; zero: not at any time
}

// Plan chooses the next action by the first rule that fits.
func Plan(s Situation) Decision {
	job, run, at := s.Job, s.Run, s.stage()
	early, why := "", ""
	if at == active {
		early, why = s.endsEarly()
	}
	ours := slices.Contains(job.Finalizers, v1alpha1.Finalizer)
	switch {
	// Other finalizers may keep a deleted object; without ours there is nothing left to do.
	case job.DeletionTimestamp != nil && (!ours || s.Released):
		return Decision{Action: Rest}
	case job.DeletionTimestamp != nil:
		return Decision{Action: Remove}

	case s.Unasked:
		return Decision{Action: Rest}

	// The ledger has no run, but the status does: the ledger was lost. An attempt that was sent or refused according to
	// the status is not looked up, so it is never sent again; only an open intent is.
	case at == notBegun && job.Status.Attempt > 0 && restorable(job.Status):
		return Decision{Action: Restore}
	case at == notBegun && job.Status.Attempt > 0:
		return Decision{Action: Recover, Attempt: int(job.Status.Attempt)}
	// The finalizer is set just before the intent is recorded: htcd ended between the two, or the ledger was lost.
	case at == notBegun && ours && !s.Early:
		return Decision{Action: Recover, Attempt: 1}
	case s.withheld():
		return Decision{Action: Rest}
	case at == notBegun:
		return Decision{Action: Submit, Attempt: 1}

	case at == begun:
		return Decision{Action: Recover, Attempt: run.Attempt}
	// A stop that was begun is finished, whatever was edited since.
	case at == stopping:
		return Decision{Action: Stop, Attempt: run.Attempt, Reason: run.Stop, Message: run.Message}
	case at == active && s.suspends():
		return Decision{
			Action:  Stop,
			Attempt: run.Attempt,
			Reason:  crosscheck.StopSuspended,
			Message: crosscheck.StopMessage(crosscheck.StopSuspended),
		}
	case at == active && overdue(s):
		return Decision{
			Action:  Stop,
			Attempt: run.Attempt,
			Reason:  crosscheck.StopDeadline,
			Message: DeadlinePassed(s.activeDeadline()),
		}
	case early != "":
		return Decision{Action: Stop, Attempt: run.Attempt, Reason: early, Message: why}
	// Before any is cancelled: else HTCondor makes others in their places though fewer are wanted.
	case at == active && s.Paces():
		return Decision{Action: Pace, Attempt: run.Attempt, Again: deadline(s)}
	case (at == active || at == draining) && s.Unwanted.Len() > 0:
		return Decision{Action: Cancel, Attempt: run.Attempt, Again: deadline(s)}
	case at == active, at == draining:
		return Decision{Action: Rest, Again: deadline(s)}
	case s.due():
		return next(run)
	}
	return Decision{Action: Rest, Again: Expiry(s)}
}

// Parallelism returns what a factory's jobs may be now, by spec.parallelism, the quota, and the pool. For HTCondor a
// limit of 0 jobs is none: so that it makes no more of them, none may wait for a slot.
func (s Situation) Parallelism() admission.Share {
	now := admission.Share{Open: s.Run.Procs, Idle: submit.IdleAtOnce}
	if n := s.Job.Spec.Parallelism; n != nil {
		now.Open = int(*n)
	}
	// A table counts as one job if nothing says how many there are at a time.
	counted := s.Job.Spec.Parallelism != nil || s.Job.Spec.ItemsFrom == nil
	if q := s.Quota; q != nil && q.Most > 0 && counted {
		now.Open = min(now.Open, q.Most)
	}
	if s.Pool != nil {
		now = admission.Share{Open: min(now.Open, s.Pool.Open), Idle: min(now.Idle, s.Pool.Idle)}
	}
	return admission.Share{Open: max(now.Open, 1), Idle: min(now.Idle, now.Open)}
}

// Paces reports whether what a factory's jobs may be has changed since HTCondor was told.
func (s Situation) Paces() bool {
	return s.Run.Factory > 0 && s.Counts.Waiting > 0 &&
		s.Parallelism() != admission.Share{Open: s.Run.Factory, Idle: s.Run.FactoryIdle}
}

// restorable reports whether a status says enough about its run to restore it: the run was sent, or ended without being
// sent.
func restorable(status v1alpha1.HTCJobStatus) bool {
	if status.Partial != nil && strings.HasSuffix(status.Partial.Procs, cutOff) && !status.Phase.Terminal() {
		return false // the ads say which jobs it has sent
	}
	return status.ClusterID > 0 || status.Phase.Terminal() || status.Phase == v1alpha1.PhaseSuspended
}

// next begins the attempt after run. If the ledger was lost in between, that attempt may have been sent and lost as
// well.
func next(run *ledger.Run) Decision {
	if run.Restored {
		return Decision{Action: Recover, Attempt: run.Attempt + 1}
	}
	return Decision{Action: Submit, Attempt: run.Attempt + 1}
}
