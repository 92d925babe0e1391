package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestAContainerWaitsForPeople(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	interactive := func(seconds int64) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Spec.Interactive, job.Spec.ActiveDeadlineSeconds = true, &seconds
		}
	}
	ran := "echo the script has run\n"
	b.Script("waits", ran, interactive(60))
	b.Until("waits", "submitted", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })
	// The time of the container is that of the submission; htcd's own deadline can be put off.
	b.Kubectl("patch", "htcjob", "waits", "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":3600}}`)
	_, err := b.Lab.Run(
		t.Context(),
		"kubectl",
		"patch",
		"htcjob",
		"waits",
		"-n",
		b.Namespace,
		"--type=merge",
		"-p",
		`{"spec":{"interactive":false}}`,
	)
	require.ErrorContains(t, err, "the spec cannot change while jobs are active")
	b.Script("removed", ran, interactive(5))
	b.Script("kept", "echo broken >&2; exit 3\n", func(job *v1alpha1.HTCJob) {
		job.Spec.KeepOnFailure = new(v1alpha1.KeepTime("1h"))
		job.Spec.SuccessExitCodes = []int32{0, 4}
	})
	b.Script(
		"stays",
		"echo broken >&2; exit 3\n",
		func(job *v1alpha1.HTCJob) { job.Spec.KeepOnFailure = new(v1alpha1.KeepTime("3s")) },
	)
	flow := flowIn(
		b,
		"flow",
		"  steps: [{name: look, job: {interactive: true, activeDeadlineSeconds: 20, script: {image: centos, command: bash, source: \"echo ran\"}}}]",
	)
	b.Script("fine", "exit 4\n", func(job *v1alpha1.HTCJob) {
		job.Spec.KeepOnFailure, job.Spec.SuccessExitCodes = new(v1alpha1.KeepTime("1h")), []int32{4}
	})
	for _, name := range []string{"waits", "removed"} {
		job := b.Ended(name)
		require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase, name)
		require.Equal(t, "Interactive", job.Status.Reason, name)
	}
	require.Equal(t, "Interactive", b.Get("waits").Status.Failures[0].Reason)
	require.Empty(t, b.Output(b.Fetched("waits"), 0), "the script was not run")

	ended := flow.ended()
	require.Equal(t, v1alpha1.PhaseFailed, ended.Status.Phase)
	require.Equal(t, "Interactive", ended.Status.Failures[0].Reason)
	require.Equal(t, "look/job_0", ended.Status.Failures[0].Node)
	require.Equal(t, v1alpha1.PhaseSucceeded, b.Ended("fine").Status.Phase)
	stays := b.Fetched("stays")
	require.EqualValues(t, 3, *stays.Status.ExitCode)
	require.Contains(
		t,
		stays.Status.Failures[0].Stderr,
		"broken\nhtcd: the script has ended with the return code 3; its container stays for 3 s (spec.keepOnFailure)",
	)
	require.EqualValues(t, 1, b.Get("kept").Status.Active)
}
