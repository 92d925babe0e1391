// Package condor has HTCondor's words for a job, and htcd's own in its ad: attributes, states, reasons and failures.
// Pure methods of Job decide what a job's ad means.
package condor
