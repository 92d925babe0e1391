package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestSomeJobsAreCancelledAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	c.Script("some", "test $1 = 3 || sleep 1000\n", trial.Queue(4))
	c.ends(2, "cancel", "some", "--proc", "x")
	c.Until(
		"some",
		"done with one",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded == 1 && job.Status.Running > 0 },
	)
	c.ends(1, "cancel", "some", "--proc", "4")
	require.Equal(t, "htcjob.htc.cern.ch/some cancels its jobs 0,3\n", c.ends(0, "cancel", "some", "--proc", "0,3"))
	job := c.Until("some", "without one", func(job *v1alpha1.HTCJob) bool { return job.Status.Failed > 0 })
	require.Equal(t, []int32{2, 1, 1}, countsOf(job), "what has ended stays as it is")
	require.Equal(t, "Removed", job.Status.Failures[0].Reason)
	require.Contains(t, job.Status.Failures[0].Message, "cancelled by the annotation htc.cern.ch/cancel-procs")
	told(c.Bench, "some", "Cancelled", "1 job removed from HTCondor: 0")

	// With the rights of a user, by kubectl.
	c.Kubectl("create", "rolebinding", "alice", "--clusterrole=htcjob-user", "--user=alice")
	c.Kubectl("annotate", "--as=alice", "--overwrite", "htcjob", "some", v1alpha1.CancelProcsAnnotation+"=1/1-9")
	told(c.Bench, "some", "CancelRefused", "there is no job 9: they are numbered 0 to 3")
	c.Kubectl("annotate", "--as=alice", "--overwrite", "htcjob", "some", v1alpha1.CancelProcsAnnotation+"=1/1-2")
	job = c.Phase("some", v1alpha1.PhaseRemoved)
	require.Equal(t, []int32{0, 1, 3}, countsOf(job))
	require.Equal(t, "htcjob.htc.cern.ch/some has ended already\n", c.ends(0, "cancel", "some", "--proc", "1"))
	require.Empty(t, c.Queued(trial.Tagged(job)+" && JobStatus != 4"))
}
