// Package usage sums up what the jobs of an attempt have used of what they asked for:
//
//	ad ── schedd.Job.Use ──> Use, a column of the job's row ── Tally ──> v1alpha1.Usage, in the run's row and the status
//
// It does no I/O.
package usage
