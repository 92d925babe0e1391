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

// refused waits until the jobs of each object are in HTCondor or are refused, or the time is over. It ends with 1 if
// one is refused.
func (c *cluster) refused(ctx context.Context, all []*object, warnings io.Writer) error {
	short, cancel := context.WithTimeout(ctx, refusesWithin)
	defer cancel()
	ends := make([]*object, len(all))
	var group errgroup.Group
	for i, o := range all {
		group.Go(func() error {
			ends[i] = c.decided(short, o)
			return nil
		})
	}
	_ = group.Wait() // of functions that return no error
	refusals := 0
	for _, o := range ends {
		if o != nil && wasRefused(o) {
			refusals++
			fmt.Fprintln(warnings, Plain(fmt.Sprintf("%s: refused: %s", o.shown(), o.Status.Message)))
		}
	}
	if ctx.Err() != nil {
		return Exit{exitInterrupted}
	}
	if refusals > 0 {
		return Exit{1}
	}
	return nil
}

// decided returns the object once HTCondor has its jobs or they were refused; nil if that is not known in time.
func (c *cluster) decided(ctx context.Context, submitted *object) *object {
	for o := submitted; ; {
		if over(o, submitted) || o.Status.ObservedGeneration >= submitted.Generation && len(o.Status.JobID) > 0 {
			return o
		}
		var err error
		if o, err = c.next(ctx, o); err != nil {
			return nil // an outage of the apiserver is no refusal
		}
	}
}

// wasRefused reports whether an object has failed without a job.
func wasRefused(o *object) bool {
	return o.Status.Phase == v1alpha1.PhaseFailed && len(o.Status.JobID) == 0
}
