package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestWhatIsIdleOrHeldForTooLongIsRemoved(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	nowhere := func(job *v1alpha1.HTCJob) { job.Spec.Requirements = "Memory > 99999999" }
	b.Script("idle", "exit 0\n", nowhere, func(job *v1alpha1.HTCJob) { job.Spec.IdleDeadlineSeconds = new(int64(3)) })
	b.Script("held", "echo why >&2; exit 3\n", func(job *v1alpha1.HTCJob) {
		job.Spec.HeldDeadlineSeconds, job.Spec.HTCOpts = new(int64(3)), "on_exit_hold = true\n"
	})
	b.Script("own", "exit 0\n", nowhere, func(job *v1alpha1.HTCJob) {
		job.Spec.IdleDeadlineSeconds, job.Spec.HTCOpts = new(
			int64(3600),
		), "periodic_remove = JobStatus == 1 && time() - EnteredCurrentStatus > 3\n"
	})
	// The deadline would have come later; the user's own condition removed it.
	b.Script("both", "exit 0\n", func(job *v1alpha1.HTCJob) {
		job.Spec.HeldDeadlineSeconds, job.Spec.HTCOpts = new(
			int64(3600),
		), "on_exit_hold = true\nperiodic_remove = JobStatus == 5 && HoldReasonCode == 3\n"
	})
	b.Script(
		"lacks",
		"echo no file >&2\n",
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "transfer_output_files = nothing\n" },
	)
	for name, want := range map[string]struct {
		phase           v1alpha1.Phase
		reason, message string
	}{
		"idle": {v1alpha1.PhaseFailed, "IdleDeadlineExceeded", "removed: no slot within 3 s (idleDeadlineSeconds)"},
		"held": {v1alpha1.PhaseFailed, "HeldDeadlineExceeded", "removed: on hold for more than 3 s (heldDeadlineSeconds); HTCondor held it because: The job attribute OnExitHold"},
		"both": {v1alpha1.PhaseRemoved, "Removed", "The job attribute PeriodicRemove expression"},
		"own":  {v1alpha1.PhaseRemoved, "Removed", "The job attribute PeriodicRemove expression"},
	} {
		job := b.Ended(name)
		require.Equal(t, want.phase, job.Status.Phase, name)
		require.Equal(t, want.reason, job.Status.Failures[0].Reason, name)
		require.Contains(t, job.Status.Failures[0].Message, want.message, name)
	}
	require.Equal(t, "why", b.Get("held").Status.Failures[0].Stderr)
	lacks := b.Phase("lacks", v1alpha1.PhaseHeld)
	require.Contains(t, b.Condition(lacks, v1alpha1.ConditionHeld).Message, "The end of its standard error:\nno file\n")
}

func TestAJobThatRunsForTooLongEndsByItsOwnDeadline(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	limited := func(seconds int64) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			// Whatever releases held jobs does not release these.
			job.Spec.RunDeadlineSeconds, job.Spec.HTCOpts = &seconds, "periodic_release = true\nmax_retries = 3\n"
		}
	}
	b.Script("long", "sleep 600\n", limited(3))
	b.Script("short", "exit 0\n", limited(600))
	flow := flowIn(
		b,
		"late",
		"  steps:\n  - name: long\n    job:\n      script: {image: centos, command: bash, source: sleep 600}\n      runDeadlineSeconds: 3\n",
	)
	job := b.Ended("long")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Len(t, job.Status.Failures, 1)
	require.Equal(t, "RunDeadlineExceeded", job.Status.Failures[0].Reason)
	require.Equal(t, "removed: it ran for more than 3 s (runDeadlineSeconds)", job.Status.Failures[0].Message)
	require.Equal(t, v1alpha1.PhaseSucceeded, b.Ended("short").Status.Phase)
	w := flow.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(t, "RunDeadlineExceeded", w.Status.Failures[0].Reason)
}
