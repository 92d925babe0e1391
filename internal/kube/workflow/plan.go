package workflow

import (
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Action is something that needs HTCondor or the ledger.
type Action string

// The actions.
const (
	Rest    Action = "rest"    // nothing to do
	Submit  Action = "submit"  // begin the DAG of this level
	Recover Action = "recover" // look up by its tag what became of the newest DAG
	Resize  Action = "resize"  // have the newest DAG keep to what rules have made of maxConcurrent
	Stop    Action = "stop"    // remove what has not ended of the newest DAG from HTCondor
	Settle  Action = "settle"  // ask how the nodes of a DAG ended that has ended
	Remove  Action = "remove"  // remove everything from HTCondor, then release the object
)

// Decision is what to do about a workflow.
type Decision struct {
	Action  Action
	Level   int       // of the DAG that begins
	Again   bool      // it begins a new attempt
	Reason  string    // why the newest DAG is stopped: one of crosscheck's stops
	Message string    // the same for the user
	At      time.Time // when to decide again if nothing happens; zero: not at any time
}

// Plan chooses the next action by the first rule that fits.
func Plan(s Situation) Decision {
	w, dag := s.Workflow, s.newest()
	ours := slices.Contains(w.Finalizers, v1alpha1.Finalizer)
	switch {
	// Other finalizers may keep a deleted object; without ours there is nothing left to do.
	case w.DeletionTimestamp != nil && (!ours || s.Released):
		return Decision{Action: Rest}
	case w.DeletionTimestamp != nil:
		return Decision{Action: Remove}

	// Whether there is a later DAG, which the status may tell of, and which nodes it has follows from how these ended.
	case s.lost() && dag != nil && dag.Run.State == ledger.Submitted && !dag.settled():
		return Decision{Action: Settle}
	// The finalizer is set just before the intent is recorded: htcd ended between the two, or the ledger was lost. A
	// status that somebody has edited may tell of an end while a DAG is open: HTCondor knows.
	case s.lost() && s.toldItsEnd() && (dag == nil || dag.Run.State != ledger.Intent || s.Sought):
		return Decision{Action: Rest, At: s.expiry()}
	case dag == nil && ours, s.lost():
		return Decision{Action: Recover, At: s.expiry()}
	case s.withheld():
		return Decision{Action: Rest}
	case dag == nil:
		return Decision{Action: Submit, Again: true}

	case dag.Run.State == ledger.Intent:
		return Decision{Action: Recover}
	// A stop that was begun is finished, whatever was edited since.
	case dag.Run.Stop != "" && !dag.settled():
		return Decision{Action: Stop, Reason: dag.Run.Stop, Message: dag.Run.Message}
	case !dag.settled() && s.suspends():
		return stop(crosscheck.StopSuspended)
	case !dag.settled() && dag.Run.Confirmed:
		return Decision{Action: Settle}
	case !dag.settled() && s.overdue():
		return Decision{
			Action:  Stop,
			Reason:  crosscheck.StopDeadline,
			Message: lifecycle.DeadlinePassed(s.activeDeadline()),
		}
	case !dag.settled() && s.aborts():
		return stop(crosscheck.StopAborted)
	case !dag.settled() && s.enough():
		return stop(crosscheck.StopCompleted)
	case !dag.settled() && s.finishedByRule(*dag):
		return stop(crosscheck.StopFinished)
	case !dag.settled() && s.resized():
		return Decision{Action: Resize}
	case !dag.settled():
		return Decision{Action: Rest, At: s.deadline()}

	case s.due():
		return Decision{Action: Submit, Again: true}
	case s.repeating():
		return s.planRepeat()
	}
	if level, is := s.next(); is {
		switch {
		case s.waits():
			return Decision{Action: Rest}
		case s.final(level):
			return Decision{Action: Submit, Level: level}
		case s.overdue(): // it may not have been possible to send it
			return Decision{
				Action:  Stop,
				Reason:  crosscheck.StopDeadline,
				Message: lifecycle.DeadlinePassed(s.activeDeadline()),
			}
		}
		return Decision{Action: Submit, Level: level, At: s.deadline()}
	}
	return Decision{Action: Rest, At: s.expiry()}
}

func stop(reason string) Decision {
	return Decision{Action: Stop, Reason: reason, Message: crosscheck.StopMessage(reason)}
}

// due reports whether the first attempt, or the one after the present one, should begin.
func (s Situation) due() bool {
	dag := s.newest()
	switch {
	case dag == nil:
		return true
	case !dag.settled():
		return false
	}
	return dag.suspended() || s.changed()
}

// withheld reports whether spec.suspend, or a quota, holds back an attempt that is due.
func (s Situation) withheld() bool {
	return s.waits() && s.due() &&
		!(s.newest() == nil && slices.Contains(s.Workflow.Finalizers, v1alpha1.Finalizer))
}

// over reports whether the newest attempt has ended and is not to be repeated.
func (s Situation) over() bool {
	dag := s.newest()
	if dag == nil || !dag.settled() || s.due() {
		return false
	}
	_, more := s.next()
	return !more
}

// inFinally reports whether the newest DAG is that of finally, which runs whatever happened.
func (s Situation) inFinally() bool {
	level := s.level(*s.newest())
	return level >= 0 && s.final(level)
}

// aborts reports whether the failure of a node ends everything.
func (s Situation) aborts() bool {
	dag := s.newest()
	return (s.failsAll(*dag) || dag.Aborted) && !s.inFinally()
}

// failsAll reports whether spec.failurePolicy has everything end as nodes of a DAG have failed.
func (s Situation) failsAll(d DAG) bool {
	return s.Workflow.Spec.FailurePolicy == v1alpha1.FailureAbort && d.failed() > 0 &&
		(d.Sequences.Failed > 0 || s.Graph == nil || len(s.failedSteps()) > 0)
}

// enough reports whether the remaining sequences are no longer needed.
func (s Situation) enough() bool {
	if s.Graph == nil || s.Workflow.Spec.Sequences == nil || s.Workflow.Spec.Sequences.Complete == nil || s.changed() {
		return false
	}
	dag := s.newest()
	if repeats(s.Workflow) { // which successes count is known when it has ended
		return false
	}
	return s.level(*dag) == s.lastOfSequences() && dag.Sequences.Active > 0 && dag.Sequences.Succeeded >= s.wanted()
}

// activeDeadline returns how long an attempt may take, nil for any time, and who says so.
func (s Situation) activeDeadline() (seconds *int64, whose string) {
	return lifecycle.ActiveDeadline(s.Workflow.Spec.ActiveDeadlineSeconds, s.newest().Run)
}

// deadline returns when the steps of an attempt must have ended; the zero time means no limit.
func (s Situation) deadline() time.Time {
	seconds, _ := s.activeDeadline()
	began := s.DAGs[0].Run.Submitted
	if seconds == nil || began.IsZero() || s.inFinally() {
		return time.Time{}
	}
	return lifecycle.After(began, *seconds)
}

func (s Situation) overdue() bool {
	at := s.deadline()
	return !at.IsZero() && !s.Now.Before(at)
}

// ttl returns how many seconds an ended workflow is kept, nil for as long as nobody deletes it.
func (s Situation) ttl() *int32 {
	return pool.Keep(s.Workflow.Spec.TTLSecondsAfterFinished, s.Keep, s.phase())
}

// expiry returns when an ended workflow should be deleted; the zero time means never.
func (s Situation) expiry() time.Time {
	is := s.Workflow.Status
	switch lost := s.lost(); {
	case s.Workflow.DeletionTimestamp != nil:
	case lost && is.Phase.Terminal() && is.CompletionTime != nil:
		return lifecycle.KeptUntil(is.CompletionTime.Time, s.ttl(), false)
	case !lost && s.over():
		return lifecycle.KeptUntil(s.newest().Run.Ended, s.ttl(), s.Unfetched || s.Pushes.Unpushed > 0)
	}
	return time.Time{}
}
