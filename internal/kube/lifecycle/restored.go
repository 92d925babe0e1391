package lifecycle

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// OwesOutput reports whether output of an ended run had not been fetched, or not been pushed, when its status was
// written. Then HTCondor is asked once more how its jobs ended, and the output of those that ended by themselves is
// fetched.
func OwesOutput(conditions []metav1.Condition) bool {
	owed := func(kind string, settled ...string) bool {
		said := meta.FindStatusCondition(conditions, kind)
		return said != nil && said.Status != metav1.ConditionTrue && !slices.Contains(settled, said.Reason)
	}
	return owed(v1alpha1.ConditionOutputFetched, ReasonGivenUp, ReasonIncomplete) ||
		owed(v1alpha1.ConditionOutputsPushed, ReasonNotPushed)
}

// Ends returns an end for every proc that an ended run has sent: the procs that the status lists come first, and the
// status' counts say how the others ended. If output is missing, the ends count only as callbacks, which HTCondor may
// correct. If none is, that of what ended by itself is here.
func Ends(run ledger.Run, status v1alpha1.HTCJobStatus) []ledger.Proc {
	source := crosscheck.FromHTCondor
	if !run.Confirmed {
		source = crosscheck.FromCallback
	}
	all, _ := run.Numbers() // from the status, and so checked
	numbers := all.Numbers()
	for n := len(numbers); run.Sent == "" && n < run.Procs; n++ {
		numbers = append(numbers, n)
	}
	stopped := run.All() - int(status.Active+status.Succeeded+status.Failed) // if the run was suspended, or ended early
	procs := ends(run, status, numbers, int(status.Failed)-run.KeptFailed, stopped, source)
	if !run.Confirmed || OwesOutput(status.Conditions) ||
		meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionOutputFetched) == nil {
		return procs
	}
	removed := []string{
		"Removed", run.Stop, condor.ReasonRanTooLong, condor.ReasonHeldTooLong, condor.ReasonIdleTooLong,
	}
	for i := range procs {
		switch p := &procs[i]; {
		case slices.Contains(removed, p.Reason):
			p.JobStatus = int(condor.Removed) // HTCondor keeps no output of such jobs
		case p.Reason != crosscheck.ReasonLost:
			p.Fetched = ledger.IsFetched
		}
	}
	return procs
}

// Kept returns the ends of the procs that a run has not sent, as far as a status says.
func Kept(run ledger.Run, status v1alpha1.HTCJobStatus) []ledger.Proc {
	sent, err := run.Numbers()
	if err != nil || run.Sent == "" {
		return nil
	}
	var numbers []int
	for n := range run.Jobs {
		if !sent.Has(n) {
			numbers = append(numbers, n)
		}
	}
	procs := ends(run, status, numbers, run.KeptFailed, 0, ledger.SourceCarried)
	for i := range procs {
		procs[i].JobStatus, procs[i].Fetched = int(condor.Completed), ledger.IsFetched
	}
	return procs
}

// Recalled adds to a run what its status says about an attempt that sends only some procs.
func Recalled(run ledger.Run, status v1alpha1.HTCJobStatus) ledger.Run {
	p := status.Partial
	if p == nil {
		return run
	}
	numbers, err := procset.Parse(p.Procs, math.MaxInt32)
	if err != nil {
		return run // it was cut: the ads say it
	}
	run.Sent, run.Procs, run.KeptFailed = numbers.String(), numbers.Len(), int(p.Failed)
	run.Jobs = run.Procs + int(p.Succeeded+p.Failed)
	return run
}

func ends(
	run ledger.Run,
	status v1alpha1.HTCJobStatus,
	numbers []int,
	failed, stopped int,
	source string,
) []ledger.Proc {
	procs := make([]ledger.Proc, len(numbers))
	at := make(map[int]*ledger.Proc, len(numbers))
	for i, n := range numbers {
		procs[i] = ledger.Proc{
			UID: run.UID, Attempt: run.Attempt, Proc: n, Status: ledger.StatusSucceeded,
			Reason: "Completed", Source: source, Changed: run.Ended,
		}
		at[n] = &procs[i]
	}
	fail := func(p *ledger.Proc, reason, message string) {
		p.Status, p.Reason, p.Message = ledger.StatusFailed, reason, message
		failed--
	}
	for _, f := range status.Failures {
		if p := at[numberOf(f)]; p != nil && failed > 0 {
			fail(p, f.Reason, f.Message)
			p.ID, p.ExitCode, p.Signal, p.Stderr = f.JobID, intOrNil(f.ExitCode), intOrNil(f.Signal), f.Stderr
		}
	}
	for i := len(procs) - 1; i >= 0 && stopped > 0; i-- {
		if p := &procs[i]; p.Status == ledger.StatusSucceeded {
			p.Status, p.Reason, p.Message = ledger.StatusFailed, run.Stop, crosscheck.RemoveReason(run.Stop)
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

// numberOf returns the number of a failed job, -1 if there is none.
func numberOf(f v1alpha1.Failure) int {
	if f.Proc != nil {
		return int(*f.Proc)
	}
	_, number, _ := strings.Cut(f.JobID, ".") // of an htcd that did not say more
	if n, err := strconv.Atoi(number); err == nil {
		return n
	}
	return -1
}

func intOrNil(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}
