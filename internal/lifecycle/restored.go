package lifecycle

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// OwesOutput reports whether output of an ended run had not been fetched, or not been pushed, when its status was written. Then
// HTCondor is asked once more how its jobs ended, and the output of those that ended by themselves is fetched.
func OwesOutput(status v1alpha1.HTCJobStatus) bool {
	owed := func(kind string, settled ...string) bool {
		said := meta.FindStatusCondition(status.Conditions, kind)
		return said != nil && said.Status != metav1.ConditionTrue && !slices.Contains(settled, said.Reason)
	}
	return owed(v1alpha1.ConditionOutputFetched, ReasonGivenUp, ReasonIncomplete) ||
		owed(v1alpha1.ConditionOutputsPushed, ReasonNotPushed)
}

// Ends returns an end for every proc of an ended run: the procs that the status lists by job id come first, and the status' counts
// say how the others ended. If output is missing, the ends count only as callbacks, which HTCondor may correct.
func Ends(run ledger.Run, status v1alpha1.HTCJobStatus) []ledger.Proc {
	source := crosscheck.FromHTCondor
	if !run.Confirmed {
		source = crosscheck.FromCallback
	}
	procs := make([]ledger.Proc, run.Procs)
	for i := range procs {
		procs[i] = ledger.Proc{
			UID: run.UID, Attempt: run.Attempt, Proc: i, Status: ledger.StatusSucceeded,
			Reason: "Completed", Source: source, Changed: run.Ended,
		}
	}
	failed := int(status.Failed)
	fail := func(p *ledger.Proc, reason, message string) {
		p.Status, p.Reason, p.Message = ledger.StatusFailed, reason, message
		failed--
	}
	for _, f := range status.Failures {
		_, number, _ := strings.Cut(f.JobID, ".")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(procs) && failed > 0 {
			fail(&procs[i], f.Reason, f.Message)
			procs[i].ExitCode, procs[i].Signal, procs[i].Stderr = intOrNil(f.ExitCode), intOrNil(f.Signal), f.Stderr
		}
	}
	stopped := run.Procs - int(status.Active+status.Succeeded+status.Failed) // if the run was suspended
	for i := len(procs) - 1; i >= 0 && stopped > 0; i-- {
		if p := &procs[i]; p.Status == ledger.StatusSucceeded {
			p.Status, p.Reason, p.Message = ledger.StatusFailed, crosscheck.StopSuspended, crosscheck.RemoveReason(crosscheck.StopSuspended)
			stopped--
		}
	}
	for i := range procs {
		if failed > 0 && procs[i].Status == ledger.StatusSucceeded {
			fail(&procs[i], "Forgotten", "failed; which of the jobs did was lost with the ledger")
		}
	}
	return procs
}

func intOrNil(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}
