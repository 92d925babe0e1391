package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// What fails depends on a ConfigMap, which is read for each attempt.
func TestOnlyTheJobsThatHaveFailedRunAgain(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	c.Kubectl("create", "configmap", "mood", "--from-literal=code=3")
	c.Script(
		"part",
		"echo $1 $HTCPROCID $SEED >which; echo oh dear >&2; test $(($1 % 2)) = 0 || exit $(cat mood)\n",
		trial.Unpacked,
		func(job *v1alpha1.HTCJob) {
			job.Spec.Items = []v1alpha1.Item{{"SEED": "10"}, {"SEED": "11"}, {"SEED": "12"}, {"SEED": "13"}}
			job.Spec.Inputs = []v1alpha1.Input{
				{Name: "mood", ConfigMapKeyRef: &v1alpha1.KeyRef{Name: "mood", Key: "code"}},
			}
			job.Spec.CompleteAfterOutput = true
		},
	)
	job := c.Fetched("part")
	require.Equal(t, []int32{0, 2, 2}, countsOf(job))
	told(c.Bench, "part", "Failed", "exit code 3: oh dear")
	first := job.Status.ClusterID

	// Nothing is sent for what cannot be.
	c.ends(1, "rerun", "part", "--proc", "4")
	c.Kubectl(
		"annotate",
		"--overwrite",
		"htcjob",
		"part",
		v1alpha1.RerunAnnotation+"=odd",
		v1alpha1.RerunProcsAnnotation+"=1-9",
	)
	told(c.Bench, "part", "RerunRefused", "there is no job 9: they are numbered 0 to 3")

	c.Kubectl("patch", "configmap", "mood", "-p", `{"data":{"code":"0"}}`)
	c.ends(0, "rerun", "part", "--failed")
	c.ends(0, "wait", "part", "--timeout", trial.Patience.String())
	job = c.Get("part")
	require.Equal(t, []int32{0, 4, 0}, countsOf(job))
	require.True(t, job.Status.OutputFetched, "Succeeded waits for it")
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, &v1alpha1.Partial{Procs: "1,3", Succeeded: 2}, job.Status.Partial)
	require.Equal(t, v1alpha1.JobIDs(int(job.Status.ClusterID), 2), job.Status.JobID)
	require.NotEqual(t, first, job.Status.ClusterID)
	for proc := range 4 {
		require.Equal(t, fmt.Sprintf("%[1]d %[1]d %d\n", proc, 10+proc), c.File(job, proc, "which"))
	}
	ads := c.Ads(trial.Tagged(job)+" && HTCJobAttempt == 2", "HTCJobProc")
	for i, number := range []int{1, 3} {
		require.Contains(t, ads, fmt.Sprintf("%d.%d %d", job.Status.ClusterID, i, number), "%v", ads)
	}

	// What others read is of both attempts.
	c.Script("after", "cat before\n", trial.Queue(4), trial.Unpacked, func(job *v1alpha1.HTCJob) {
		job.Spec.Inputs = []v1alpha1.Input{fromJob("before", "part", "which", "Same")}
	})
	after := c.Fetched("after")
	for proc := range 4 {
		require.Equal(t, fmt.Sprintf("%[1]d %[1]d %d\n", proc, 10+proc), c.Output(after, proc))
	}

	// The columns, by HTCondor's ads.
	owner := c.Condor("condor_history", trial.Tagged(job)+" && HTCJobAttempt == 1", "Owner")
	require.True(t, strings.HasSuffix(owner[0], " "+job.Status.User), "%q of %v", job.Status.User, owner)
	require.NotNil(t, job.Status.StartedAt)
	require.NotEmpty(
		t,
		c.Until(
			"part",
			"confirmed",
			func(job *v1alpha1.HTCJob) bool { return job.Status.Duration != "" },
		).Status.Duration,
	)
	wide := c.Kubectl("get", "htcjob", "part", "-o", "wide")
	for _, column := range []string{"USER", "STARTED", "TIME", job.Status.User} {
		require.Contains(t, wide, column)
	}
	require.Contains(t, c.ends(0, "list", "-o", "wide"), job.Status.User)
}
