package workflow

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// reasonLedgerLost is that of a workflow of which the ledger knows less than its status.
const reasonLedgerLost = "LedgerLost"

// lostError: the ledger lacks DAGs of a workflow, and only somebody can say what to do.
type lostError struct{ found string }

func (e *lostError) Error() string {
	return fmt.Sprintf(
		"htcd's ledger has lost what was sent for this HTCWorkflow (%s): nothing is sent in addition, and what is in HTCondor goes on there; "+
			"take the output that you need, delete this HTCWorkflow, which removes its jobs, and apply it again",
		e.found,
	)
}

// Blocker is what the condition Submitted says of it.
func (e *lostError) Blocker() lifecycle.Blocker {
	return lifecycle.Blocker{Condition: v1alpha1.ConditionSubmitted, Reason: reasonLedgerLost, Message: e.Error()}
}

// lost reports whether the ledger knows less of a workflow than its status, which is written later: the ledger, or a
// part of it, was lost.
func (s Situation) lost() bool {
	status, sent, forgotten := s.Workflow.Status, 0, false
	for _, d := range s.DAGs {
		if d.Run.Cluster > 0 {
			sent++
		}
		forgotten = forgotten || d.Run.Reason == reasonLedgerLost
	}
	return slices.Contains(s.Workflow.Finalizers, v1alpha1.Finalizer) &&
		(int(status.Attempt) > s.Attempt || int(status.Attempt) == s.Attempt && len(status.JobID) > sent && !forgotten)
}

// toldItsEnd reports whether there is nothing more to do, as the status says, for a workflow that the ledger has lost.
func (s Situation) toldItsEnd() bool {
	status := s.Workflow.Status
	return status.Phase.Terminal() && !s.dueAfterLoss() && !lifecycle.OwesOutput(status.Conditions)
}

// dueAfterLoss reports whether an ended workflow that the ledger has lost is to be run again.
func (s Situation) dueAfterLoss() bool {
	w := s.Workflow
	return w.Rerun() != "" && w.Rerun() != w.Status.Rerun || w.SpecHash() != w.Status.SpecHash
}

// lostDAG is what of a workflow is to be recorded next.
type lostDAG struct {
	number   int  // of the DAG among all of the workflow; 0: neither its status nor the schedd knows any more
	attempts int  // so many attempts are missing before that
	again    int  // number of a DAG whose files never arrived; 0: there is none
	told     bool // the status speaks of it
}

// nextLost chooses it. sent has the clusters that the schedd shows in queue or history, by the numbers of their DAGs;
// unstaged has those whose files never arrived, which are sent again in their places. DAGs that the status does not
// speak of were sent after it was written.
func (s Situation) nextLost(sent, unstaged map[int]int) (lostDAG, error) {
	status, newest, recorded := s.Workflow.Status, 0, map[string]bool{}
	for _, d := range s.DAGs {
		newest = d.Run.Attempt
		recorded[jobID(d.Run.Cluster)] = true
	}
	next, attempt := lostDAG{}, int(status.Attempt)
	if attempt >= s.Attempt {
		for _, id := range status.JobID {
			if attempt == s.Attempt && recorded[id] {
				continue
			}
			if next.again = placeOf(unstaged, id); next.again > 0 {
				continue
			}
			if number := placeOf(sent, id); number > newest {
				return lostDAG{number: number, attempts: max(attempt-1-s.Attempt, 0), told: true}, nil
			}
			return lostDAG{}, &lostError{"neither the queue nor the history of the schedd shows its DAG " + id}
		}
	}
	next.attempts = max(attempt-s.Attempt, 0)
	if over := status.Phase.Terminal() || status.Phase == v1alpha1.PhaseSuspended; !over {
		next.attempts = max(next.attempts-1, 0)
	}
	for number := range sent {
		if number > newest && (next.number == 0 || number < next.number) {
			next.number = number
		}
	}
	if next.number > 1 && newest == 0 && attempt == 0 {
		return lostDAG{}, &lostError{fmt.Sprintf("the schedd has its DAG %d, but not the first", next.number)}
	}
	return next, nil
}

// placeOf returns the number of the DAG with that job, 0 if there is none.
func placeOf(clusters map[int]int, id string) int {
	for number, cluster := range clusters {
		if jobID(cluster) == id {
			return number
		}
	}
	return 0
}

// speaksOf reports whether the status of a workflow speaks of a DAG.
func speaksOf(w *v1alpha1.HTCWorkflow, j condor.Job) bool {
	return slices.Contains(w.Status.JobID, jobID(j.Cluster))
}

func jobID(cluster int) string { return fmt.Sprintf("%d.0", cluster) }

// forgettable reports whether htcd may go on without an attempt that it cannot record again: it has ended, as its
// status says and HTCondor does not deny, nothing of it is still to be fetched, and another is to begin. With
// spec.resume that runs all nodes, as none is known to be done.
func (s Situation) forgettable(stores bool, found []sending.At) bool {
	status := s.Workflow.Status
	return (status.Phase.Terminal() || allEnded(status.Nodes)) && !goesOn(s.Workflow, found) &&
		s.dueAfterLoss() && int(status.Attempt) > s.Attempt &&
		(!stores || len(status.JobID) == 0 ||
			meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionOutputFetched))
}

// allEnded reports whether no node of the DAGs that were sent may still run. The phase does not say that of a workflow
// that was edited after its end.
func allEnded(n v1alpha1.NodeCounts) bool { return n.Total > 0 && n.Done+n.Failed+n.Futile == n.Total }

// goesOn reports whether HTCondor has a DAG of a workflow that has not ended, or a later one than its status names. The
// tag of another account's DAG may be forged, so such a DAG counts only if the status names it.
func goesOn(w *v1alpha1.HTCWorkflow, found []sending.At) bool {
	_, newest := sending.Newest(found)
	told := 0
	for _, at := range found {
		others := slices.DeleteFunc(slices.Clone(at.Others), func(j condor.Job) bool { return !speaksOf(w, j) })
		if slices.ContainsFunc(slices.Concat(at.Queued, others), func(j condor.Job) bool { return !j.Over() }) {
			return true
		}
		for _, j := range slices.Concat(at.Queued, at.Left, others) {
			if speaksOf(w, j) {
				told = max(told, j.Tag.Attempt)
			}
		}
	}
	return told > 0 && newest > told
}
