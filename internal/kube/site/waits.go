package site

import (
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// usualWait is how long an interactive job waits for people where activeDeadlineSeconds says nothing.
const usualWait = time.Hour

// waits returns for how many seconds the container of a job waits for people instead of running the script, and for how
// many it stays when the script has failed.
func waits(spec v1alpha1.HTCJobSpec) (interactive, keep int64, err error) {
	if spec.Interactive {
		interactive = int64(usualWait / time.Second)
		if spec.ActiveDeadlineSeconds != nil {
			interactive = min(*spec.ActiveDeadlineSeconds, mostWait)
		}
	}
	if spec.KeepOnFailure == nil {
		return interactive, 0, nil
	}
	kept, err := time.ParseDuration(string(*spec.KeepOnFailure))
	if err != nil || kept < time.Second || kept > 24*time.Hour {
		return 0, 0, condor.Refusal(
			"spec.keepOnFailure: expected a time from 1s to 24h such as 10m, found %q",
			*spec.KeepOnFailure,
		)
	}
	return interactive, int64(kept / time.Second), nil
}

// mostWait is what every sleep can count.
const mostWait = 1<<31 - 1
