package lifecycle

import (
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// Ahead reports whether a status knows more about what was sent than the ledger, whose newest run is given. The ledger
// is written first, so this happens only if an older ledger was restored.
func Ahead(status v1alpha1.HTCJobStatus, run ledger.Run) bool {
	attempt := int(status.Attempt)
	return attempt > run.Attempt || attempt == run.Attempt && run.State == ledger.Intent && restorable(status)
}

// Word is whose word counts about what was sent for an HTCJob.
type Word int

// The words.
const (
	LedgersWord   Word = iota // its newest run is the newest there is
	StatusWord                // the ledger has lost what the status tells of
	HTCondorsWord             // HTCondor is to be asked about the ledger's newest run first
)

// Whose decides it by the first rule that fits. run is the newest in the ledger, nil if there is none; agreed: since
// this htcd began at that time, the ledger has known all that the status said.
func Whose(status v1alpha1.HTCJobStatus, run *ledger.Run, agreed bool, began time.Time) Word {
	switch {
	case run == nil && status.Attempt == 0, run != nil && !Ahead(status, *run):
		return LedgersWord
	// The ledger is written first, and a copy of it is put back only while no htcd has it open: somebody has edited the
	// status since.
	case agreed:
		return LedgersWord
	case run == nil || run.State != ledger.Submitted || run.Confirmed:
		return StatusWord
	// An attempt begins when all jobs of the one before have ended. If an older ledger was put back, HTCondor knows
	// that they have.
	case run.Checked.Before(began):
		return HTCondorsWord
	}
	return LedgersWord
}

// Forgotten reports whether the ledger lacks everything, or the newest run, of what may have been sent for an HTCJob.
func Forgotten(job *v1alpha1.HTCJob, own []ledger.Run) bool {
	return len(own) == 0 || Ahead(job.Status, own[len(own)-1])
}
