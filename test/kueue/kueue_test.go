//go:build kueue

package kueue

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

const long = "sleep 1000\n"

func TestItIsSentOnceThereIsQuotaAndEndsGiveItBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Script("first", "[ $1 = 0 ] || sleep 1000\n", trial.Queue(2), queued)
	b.is("first", "Admitted", "Admitted")
	b.Script("large", "exit 0\n", trial.Queue(3), queued)
	b.Script("second", "exit 0\n", queued)
	// The first of the two jobs ends.
	require.EqualValues(t, 1, b.Ended("second").Status.Succeeded)
	b.is("second", "Finished", "Succeeded")
	first := b.runs("first")
	require.Equal(t, 1, b.workload("first").Status.ReclaimablePods[0].Count)
	require.EqualValues(t, 1, first.Status.Attempt)
	b.is("first", "PodsReady", "Sent")

	large := b.waits("large")
	require.Contains(t, large.Status.Message, "it waits in Kueue's queue team: couldn't assign flavors to pod set main")
	require.Zero(t, large.Status.Attempt)
	require.Empty(t, b.Ads(trial.Tagged(large)))
	b.Kubectl("label", "htcjob", "large", "kueue.x-k8s.io/queue-name-")
	require.EqualValues(t, 3, b.Ended("large").Status.Succeeded, "nothing to wait for without the label")
	b.Eventually(
		func() bool { return b.workload("large") == nil },
		func() string { return "its Workload is still there" },
	)

	b.Script(
		"wrong",
		"exit 0\n",
		func(job *v1alpha1.HTCJob) { job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "No_Queue"} },
	)
	b.Until("wrong", "refused", func(job *v1alpha1.HTCJob) bool {
		return strings.HasPrefix(job.Status.Message, "it cannot get into Kueue's queue No_Queue: ")
	})
	b.Kubectl("delete", "htcjob", "wrong")

	b.Script("fails", "exit 3\n", queued)
	b.Ended("fails")
	b.is("fails", "Finished", "Failed")
	before := b.workload("fails").Metadata.Name
	b.Kubectl("annotate", "htcjob", "fails", v1alpha1.RerunAnnotation+"=again")
	b.Until(
		"fails",
		"run again",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 && job.Status.Phase.Terminal() },
	)
	b.is("fails", "Finished", "Failed")
	require.NotEqual(t, before, b.workload("fails").Metadata.Name, "a rerun waits in the queue again")
}

func TestOneOfMoreJobsThanThereIsQuotaIsSentInParts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	atOnce := func(job *v1alpha1.HTCJob) { job.Spec.Parallelism = new(int32(2)) }
	b.Script("many", "[ $1 -gt 1 ] || sleep 1000\n", trial.Queue(5), queued, atOnce)
	b.runs("many")
	many := b.Until("many", "two at a time", func(job *v1alpha1.HTCJob) bool { return job.Status.Parallelism == 2 })
	require.Equal(t, 2, b.workload("many").Spec.PodSets[0].Count)
	b.Kubectl("patch", "htcjob", "many", "--type=merge", "-p", `{"spec": {"parallelism": 5}}`)
	b.Script("other", "exit 0\n", queued)
	require.Contains(t, b.waits("other").Status.Message, "it waits in Kueue's queue team")
	require.EqualValues(t, 2, b.Get("many").Status.Parallelism, "no more than were admitted")
	require.Len(t, b.Queued(trial.Tagged(many)+" && JobUniverse != 7"), 2)
	b.Kubectl("annotate", "htcjob", "many", v1alpha1.CancelProcsAnnotation+"=1/0-1")
	ended := func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded == 3 && job.Status.Phase.Terminal() }
	b.Until("many", "ended", ended)
	b.is("many", "Finished", "Failed")
	require.EqualValues(t, 1, b.Ended("other").Status.Succeeded)
}

func TestAnEvictedHTCJobWaitsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Script("low", "[ $1 = 0 ] || sleep 1000\n", trial.Queue(2), queued)
	b.runs("low")
	b.Until("low", "half done", func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded == 1 })
	b.Script("high", long, trial.Queue(2), queued, urgent)
	b.runs("high")
	low := b.waits("low")
	require.False(t, low.Spec.Suspend, "the user's own field")
	require.Contains(t, low.Status.Message, "it waits in Kueue's queue team")
	b.Kubectl("delete", "htcjob", "high", "--timeout=2m")
	low = b.runs("low")
	require.EqualValues(t, 2, low.Status.Attempt)
	require.Equal(t, "1", low.Status.Partial.Procs, "what had ended does not run again")
	b.Kubectl("delete", "htcjob", "low", "--timeout=2m")
}

func TestAWorkloadIsDeactivatedOrDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Script("job", long, queued)
	b.runs("job")
	active := func(is string) {
		b.Kubectl(
			"patch",
			"workload",
			b.workload("job").Metadata.Name,
			"--type=merge",
			"-p",
			`{"spec": {"active": `+is+`}}`,
		)
	}
	active("false")
	job := b.waits("job")
	require.Contains(t, job.Status.Message, "is deactivated in Kueue")
	b.Eventually(
		func() bool { return b.workload("job").Status.Admission == nil },
		func() string { return b.Kubectl("get", "workloads", "-o", "yaml") },
	)
	active("true")
	job = b.runs("job")
	require.EqualValues(t, 2, job.Status.Attempt)

	before := b.workload("job").Metadata.UID
	b.Kubectl("delete", "workload", b.workload("job").Metadata.Name)
	b.Eventually(
		func() bool { w := b.workload("job"); return w != nil && w.Metadata.UID != before },
		func() string { return "there is no other Workload" },
	)
	b.is("job", "Admitted", "Admitted")
	b.runs("job")

	b.Kubectl("patch", "htcjob", "job", "--type=merge", "-p", `{"spec": {"suspend": true}}`)
	b.Eventually(
		func() bool { return b.workload("job") == nil },
		func() string { return "what is suspended keeps its quota" },
	)
	b.Kubectl("delete", "htcjob", "job", "--timeout=2m")
}

// Not parallel, so it ends before the others go on: they need Kueue.
func TestKueueIsAway(t *testing.T) {
	b := newBench(t)
	b.Script("runs", long, queued)
	b.runs("runs")
	scale := func(n string) {
		_, err := b.Lab.Run(
			context.WithoutCancel(t.Context()),
			"kubectl",
			"-n",
			"kueue-system",
			"scale",
			"deployment/"+manager,
			"--replicas="+n,
		)
		require.NoError(t, err)
	}
	t.Cleanup(func() { scale("1") }) // whatever fails before
	scale("0")
	b.Eventually(func() bool {
		out, err := b.Lab.Run(t.Context(), "kubectl", "-n", "kueue-system", "get", "pods", "-o", "name")
		return err == nil && out == ""
	}, func() string { return "Kueue does not go" })
	b.Script("waits", "exit 0\n", queued)
	b.waits("waits")
	_, err := b.Lab.Run(
		t.Context(),
		"kubectl",
		"-n",
		"htcd",
		"delete",
		"pod",
		"-l",
		"app.kubernetes.io/name=htcd",
		"--force",
		"--grace-period=0",
	)
	require.NoError(t, err)
	require.NoError(t, rolledOut(b, "htcd", "htcd"))
	require.EqualValues(t, 1, b.runs("runs").Status.Attempt)
	scale("1")
	b.Ended("waits")
	require.EqualValues(t, 1, b.Get("runs").Status.Attempt)
	b.Kubectl("delete", "htcjobs", "--all", "--timeout=2m")
}
