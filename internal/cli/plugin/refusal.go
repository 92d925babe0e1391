package plugin

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// refusesWithin is how long a submission waits for a refusal; HTCondor usually answers within 1 s.
const refusesWithin = 2 * time.Second

// refused waits until the jobs of each HTCJob are in HTCondor or are refused, or the time is over. It ends with 1 if one is refused.
func (c *cluster) refused(ctx context.Context, jobs []*v1alpha1.HTCJob, warnings io.Writer) error {
	short, cancel := context.WithTimeout(ctx, refusesWithin)
	defer cancel()
	ends := make([]*v1alpha1.HTCJob, len(jobs))
	var group errgroup.Group
	for i, job := range jobs {
		group.Go(func() error {
			ends[i] = c.decided(short, job)
			return nil
		})
	}
	_ = group.Wait() // of functions that return no error
	refusals := 0
	for _, job := range ends {
		if job != nil && wasRefused(job) {
			refusals++
			fmt.Fprintln(warnings, Plain(fmt.Sprintf("%s: refused: %s", job.Name, job.Status.Message)))
		}
	}
	if ctx.Err() != nil {
		return Exit{ExitInterrupted}
	}
	if refusals > 0 {
		return Exit{1}
	}
	return nil
}

// decided returns the HTCJob once HTCondor has its jobs or they were refused; nil if that is not known in time.
func (c *cluster) decided(ctx context.Context, submitted *v1alpha1.HTCJob) *v1alpha1.HTCJob {
	for job := submitted; ; {
		if over(job, submitted) || job.Status.ObservedGeneration >= submitted.Generation && len(job.Status.JobID) > 0 {
			return job
		}
		var err error
		if job, err = c.next(ctx, job); err != nil {
			return nil // an outage of the apiserver is no refusal
		}
	}
}

// wasRefused reports whether an HTCJob has failed without a job.
func wasRefused(job *v1alpha1.HTCJob) bool {
	return job.Status.Phase == v1alpha1.PhaseFailed && len(job.Status.JobID) == 0
}
