package job

import (
	"context"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// cancel removes jobs of a run one by one from HTCondor, as the annotation asks; the others go on. Nothing is recorded:
// as long as the annotation names jobs that are open in the ledger, they are removed again. Those that end by
// themselves meanwhile keep their ends.
func (c *Controller) cancel(ctx context.Context, job *v1alpha1.HTCJob, s lifecycle.Situation) error {
	run, unwanted := *s.Run, s.Unwanted
	for unwanted.Len() > 0 {
		named := firstRanges(unwanted, mostRanges)
		// The ad of the jobs' factory has no ProcId.
		these := site.Tag(job, run.Attempt).
			Constraint().
			NotIn(condor.Completed).
			And(condor.Numbered, among(named, run.Sent != ""))
		err := c.sender.Remove(ctx, backend.TargetOf(run), these.In(run.Cluster), crosscheck.ReasonCancelled)
		if leaving := new(sending.Waiting); err == nil || errors.As(err, &leaving) {
			// Said here, because another cross-check may be the one that records their ends.
			c.Events.Normal(
				job,
				"Cancelled",
				fmt.Sprintf(
					"%s removed from HTCondor: %s",
					lifecycle.Plural(named.Len(), "job"),
					lifecycle.Shorten(named.String(), lifecycle.MaxListed),
				),
			)
		}
		if err != nil {
			return fmt.Errorf("cancel jobs of attempt %d: %w", run.Attempt, err)
		}
		if _, err := c.checkRun(ctx, run.UID); err != nil {
			return fmt.Errorf("ask how the jobs of attempt %d ended: %w", run.Attempt, err)
		}
		now, err := c.gather(ctx, job)
		if err != nil {
			return err
		}
		if n := now.Unwanted.Len(); n > 0 && n == unwanted.Len() {
			return &sending.Waiting{
				After:   reconciler.FirstRetry,
				Message: fmt.Sprintf("HTCondor has not said yet how %s ended", lifecycle.Plural(n, "cancelled job")),
			}
		}
		unwanted = now.Unwanted
	}
	return nil
}

// mostRanges bounds the length of a constraint. The next command removes what is beyond it.
const mostRanges = 200

// firstRanges returns the numbers of a set's first ranges.
func firstRanges(set procset.Set, most int) procset.Set {
	var numbers []int
	for first, last := range set.Ranges() {
		if most == 0 {
			break
		}
		most--
		for n := first; n <= last; n++ {
			numbers = append(numbers, n)
		}
	}
	return procset.Of(numbers)
}

// among matches the jobs with these numbers; own is as for condor.NumberAttribute.
func among(numbers procset.Set, own bool) condor.Constraint {
	var ranges []condor.Constraint
	for first, last := range numbers.Ranges() {
		ranges = append(ranges, condor.Numbers(own, first, last))
	}
	return condor.Or(ranges...)
}
