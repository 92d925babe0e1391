package lifecycle

import (
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// Ahead reports whether a status knows more about what was sent than the ledger, whose newest run is given. The ledger is
// written first, so this happens only if an older ledger was restored.
func Ahead(status v1alpha1.HTCJobStatus, run ledger.Run) bool {
	attempt := int(status.Attempt)
	return attempt > run.Attempt || attempt == run.Attempt && run.State == ledger.Intent && restorable(status)
}

// Forgotten reports whether the ledger lacks everything, or the newest run, of what may have been sent for an HTCJob.
func Forgotten(job *v1alpha1.HTCJob, own []ledger.Run) bool {
	return len(own) == 0 || Ahead(job.Status, own[len(own)-1])
}
