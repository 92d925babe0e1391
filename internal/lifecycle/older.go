package lifecycle

import (
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// Ahead reports whether a status knows more of what was sent than the ledger, whose newest run is given. The ledger is
// written first, so that can only be where an older one was put back.
func Ahead(status v1alpha1.HTCJobStatus, run ledger.Run) bool {
	attempt := int(status.Attempt)
	return attempt > run.Attempt || attempt == run.Attempt && run.State == ledger.Intent && toldApart(status)
}

// Forgotten reports whether the ledger has nothing, or not the newest, of what may have been sent for an HTCJob.
func Forgotten(job *v1alpha1.HTCJob, own []ledger.Run) bool {
	return len(own) == 0 || Ahead(job.Status, own[len(own)-1])
}
