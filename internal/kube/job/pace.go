package job

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
)

// How long after one write of a status the next one waits that brings only details, so that more is written with it:
// every watcher gets the whole object with every write. Details are that HTCondor has jobs in its queue, which their
// phase says already, and what it says of their executions, which the output, or what happens next, follows closely.
// What a phase, a condition or a message says never waits.
const betweenDetails = 30 * time.Second

// mayWait returns how long after the write before a change of the status may come.
func mayWait(before, after v1alpha1.HTCJobStatus) time.Duration {
	switch {
	case before.Phase.Terminal() && !lifecycle.OwesOutput(before.Conditions): // nothing more is expected
		return 0
	case onlyDetails(before, after):
		return betweenDetails
	case onlyCounts(before, after):
		return reconciler.BetweenWrites
	}
	return 0
}

// onlyChecked reports whether two statuses differ only in when HTCondor was last asked.
func onlyChecked(before, after v1alpha1.HTCJobStatus) bool {
	before.LastChecked = after.LastChecked
	return equality.Semantic.DeepEqual(before, after)
}

// onlyCounts reports whether two statuses differ only in the counts of jobs per state, the listed failures and the time
// of the last check.
func onlyCounts(before, after v1alpha1.HTCJobStatus) bool {
	before.Active, before.Succeeded, before.Failed = after.Active, after.Succeeded, after.Failed
	before.Idle, before.Running, before.Held, before.Stopped = after.Idle, after.Running, after.Held, after.Stopped
	before.Failures, before.Outputs, before.LastChecked = after.Failures, after.Outputs, after.LastChecked
	if before.Reason == after.Reason {
		before.Message = after.Message // it counts, too
	}
	return equality.Semantic.DeepEqual(before, after)
}

// onlyDetails reports whether two statuses differ only in that HTCondor shows jobs waiting that were just sent, and in
// what it has told about the jobs' executions.
func onlyDetails(before, after v1alpha1.HTCJobStatus) bool {
	before.StartedAt, before.Duration, before.Usage = after.StartedAt, after.Duration, after.Usage
	before.Idle, before.User, before.LastChecked = after.Idle, after.User, after.LastChecked
	return equality.Semantic.DeepEqual(before, after)
}

// checkedAgain reports whether the time of the last check is all that would change, and is not worth a write.
func checkedAgain(before, after v1alpha1.HTCJobStatus) bool {
	return onlyChecked(before, after) && (after.Phase.Terminal() || before.LastChecked != nil &&
		after.LastChecked != nil && after.LastChecked.Sub(before.LastChecked.Time) < crosscheck.BetweenChecks)
}
