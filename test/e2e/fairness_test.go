//go:build !releases

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// What one namespace has idle or on hold in a pool holds up its own HTCJobs and HTCWorkflows, and nobody else's.
func TestIdleAndHeldJobsOfOneNamespaceStopNoOther(t *testing.T) {
	t.Parallel()
	nowhere := func(job *v1alpha1.HTCJob) { job.Spec.Requirements = "Memory > 99999999" }
	for name, c := range map[string]struct {
		limits string
		stuck  func(b *trial.Bench, pool string)
		says   string
	}{
		"idle": {"limits: {maxIdle: 3}", func(b *trial.Bench, pool string) {
			b.Script("stuck", "exit 0\n", in(pool), nowhere, trial.Queue(3))
			b.Until("stuck", "idle", func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == 3 })
		}, "3 of 3 jobs idle (limits.maxIdle)"},
		"idle jobs that fill the pool": {"limits: {maxOpen: 6}", func(b *trial.Bench, pool string) {
			b.Script("stuck", "exit 0\n", in(pool), nowhere, trial.Queue(6))
			b.Until("stuck", "idle", func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == 6 })
		}, "6 of 6 jobs open (limits.maxOpen)"},
		"on hold": {"limits: {maxHeld: 0}", func(b *trial.Bench, pool string) {
			b.Script("stuck", "exit 0\n", in(pool), func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "on_exit_hold = true\n" })
			b.Phase("stuck", v1alpha1.PhaseHeld)
		}, "1 of at most 0 jobs on hold (limits.maxHeld)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := trial.New(t), trial.New(t)
			pool := theirs.Pool("", c.limits)
			c.stuck(theirs, pool)
			theirs.Script("waits", "exit 0\n", in(pool))
			require.Contains(t, waits(theirs, "waits", "PoolLimit"), c.says)
			ours.Script("goes", "exit 0\n", in(pool))
			require.Equal(t, v1alpha1.PhaseSucceeded, ours.Ended("goes").Status.Phase)
			require.Equal(t, "PoolLimit", theirs.Get("waits").Status.Reason)
		})
	}
}
