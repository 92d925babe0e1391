package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// flatFields fills in what scripts, Argo and Tekton wait for and cannot read from conditions and lists. The condition
// of an earlier attempt may still be there while the present one is only an intent, or was refused.
func flatFields(status *v1alpha1.HTCJobStatus, s Situation) {
	sent := s.Run != nil && s.Run.State == ledger.Submitted
	status.OutputFetched = sent && status.Phase.Terminal() &&
		meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionOutputFetched)
	switch status.Phase {
	case v1alpha1.PhaseSucceeded:
		status.ExitCode = new(int32(0))
		if status.OutputFetched {
			status.Result = s.Result
		}
	case v1alpha1.PhaseFailed:
		status.ExitCode = status.FailedWith()
	}
}

// HasResult reports whether everything is here that the jobs have left, so that spec.result can be read.
func (s Situation) HasResult() bool {
	return s.stage() == ended && s.Run.State == ledger.Submitted && s.Counts.Failed == 0 && !s.Unfetched &&
		s.Output.Completed == s.Run.All() && s.Output.GivenUp+s.Output.Incomplete == 0
}

// KeptResult returns the result that the status has already, nil if it has none or another file is asked for.
func (s Situation) KeptResult() *string {
	was := s.Job.Status
	if int(was.Attempt) != s.Run.Attempt || was.ObservedGeneration != s.Job.Generation {
		return nil
	}
	return was.Result
}
