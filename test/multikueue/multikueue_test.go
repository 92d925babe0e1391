//go:build kueue

package multikueue

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// elsewhere has an HTCJob sent to other clusters.
func elsewhere(job *v1alpha1.HTCJob) {
	job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
	job.Spec.ManagedBy = v1alpha1.MultiKueue
}

// named matches the jobs of all HTCJobs of that name in the test's namespace: in another cluster each is another
// object.
func named(b *trial.Bench, name string) string {
	return fmt.Sprintf("HTCJobNamespace == %q && HTCJobName == %q", b.Namespace, name)
}

func running(job *v1alpha1.HTCJob) bool { return job.Status.Phase == v1alpha1.PhaseRunning }

// goneFrom waits until a worker has neither an HTCJob nor a Workload.
func goneFrom(worker *trial.Bench, name string) {
	worker.T.Helper()
	worker.Eventually(func() bool {
		_, err := worker.Jobs.Get(worker.T.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && worker.Kubectl("get", "workloads", "-o", "name") == ""
	}, func() string { return name + " is left:\n" + worker.Kubectl("get", "htcjobs,workloads", "-o", "yaml") })
}

// workloadIs waits for a condition of the only Workload.
func workloadIs(b *trial.Bench, condition string) {
	b.T.Helper()
	b.Eventually(func() bool {
		out, err := b.Lab.Run(
			b.T.Context(),
			"kubectl",
			"-n",
			b.Namespace,
			"wait",
			"workloads",
			"--all",
			"--for=condition="+condition,
			"--timeout=1s",
		)
		return err == nil && strings.Count(out, "condition met") == 1
	}, func() string {
		return "no Workload is " + condition + ":\n" + b.Kubectl("get", "workloads,htcjobs", "-o", "yaml")
	})
}

func TestAnHTCJobRunsInAnotherClusterAndItsStatusComesBack(t *testing.T) {
	manager, worker := twoClusters(t)
	gone := func(name string) { t.Helper(); goneFrom(worker, name) }
	// ran counts the jobs of that name that the worker's HTCondor has seen.
	ran := func(name string) int { return len(worker.Ads(named(worker, name))) }

	manager.Script("answer", "echo 42\n", elsewhere, func(job *v1alpha1.HTCJob) { job.Spec.Result = "stdout" })
	job := manager.Until("answer", "fetched", func(job *v1alpha1.HTCJob) bool { return job.Status.OutputFetched })
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, job.Status.Message)
	require.EqualValues(t, 1, job.Status.Succeeded)
	require.Equal(t, "42", *job.Status.Result)
	require.Empty(t, job.Finalizers)
	require.Empty(t, manager.Ads(named(manager, "answer")), "it does not run here")
	gone("answer")
	require.Equal(t, 1, ran("answer"))

	manager.Kubectl("annotate", "htcjob", "answer", v1alpha1.RerunAnnotation+"=again")
	manager.Until(
		"answer",
		"run again",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Rerun == "again" && job.Status.Phase.Terminal() },
	)
	gone("answer")
	require.Equal(t, 2, ran("answer"))

	// The worker's administrator takes the quota away, and gives it back: then it may be sent again.
	manager.Script("long", "sleep 1000\n", elsewhere)
	manager.Until("long", "running", running)
	first := worker.Get("long")
	worker.Kubectl(
		"patch",
		"clusterqueue",
		"htcondor",
		"--type=merge",
		"-p",
		`{"spec": {"stopPolicy": "HoldAndDrain"}}`,
	)
	worker.Eventually(func() bool { return len(worker.Queued(trial.Tagged(first))) == 0 },
		func() string { return "what was evicted runs on" })
	worker.Kubectl("patch", "clusterqueue", "htcondor", "--type=merge", "-p", `{"spec": {"stopPolicy": "None"}}`)
	worker.Eventually(func() bool {
		again, err := worker.Jobs.Get(t.Context(), "long", metav1.GetOptions{})
		return err == nil && running(again)
	}, func() string {
		return "it is not sent again:\n" + manager.Kubectl("get", "workloads,htcjobs", "-o", "yaml")
	})
	manager.Until("long", "running again", running)

	manager.Kubectl("patch", "htcjob", "long", "--type=merge", "-p", `{"spec": {"suspend": true}}`)
	manager.Until("long", "suspended", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Phase == v1alpha1.PhaseSuspended && job.Status.Active == 0
	})
	gone("long")
	manager.Kubectl("patch", "htcjob", "long", "--type=merge", "-p", `{"spec": {"suspend": false}}`)
	manager.Until("long", "running after it was suspended", running)
	manager.Kubectl("delete", "htcjob", "long", "--timeout=2m")
	gone("long")
	require.Empty(t, worker.Queued(named(worker, "long")))
}

// The job ends while the worker's apiserver is away, for longer than Kueue waits for it (workerLostTimeout).
func TestAWorkerIsLostAndComesBack(t *testing.T) {
	manager, worker := twoClusters(t)
	wait, open := worker.Gate()
	manager.Script("kept", wait+"echo 42\n", elsewhere, func(job *v1alpha1.HTCJob) { job.Spec.Result = "stdout" })
	manager.Until("kept", "running", running)

	apiserver := worker.Lab.Part("apiserver")
	require.NoError(t, apiserver.Stop(t.Context()))
	t.Cleanup(func() { require.NoError(t, apiserver.Start(context.WithoutCancel(t.Context()))) })
	workloadIs(manager, "Evicted")
	open()
	worker.Eventually(
		func() bool { return len(worker.Ads(named(worker, "kept")+" && JobStatus == 4")) == 1 },
		func() string { return "it does not end without an apiserver" },
	)
	require.True(t, running(manager.Get("kept")), "what the worker does is not known")

	require.NoError(t, apiserver.Start(t.Context()))
	job := manager.Until("kept", "fetched", func(job *v1alpha1.HTCJob) bool { return job.Status.OutputFetched })
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, job.Status.Message)
	require.Equal(t, "42", *job.Status.Result)
	goneFrom(worker, "kept")
	require.Len(t, worker.Ads(named(worker, "kept")), 1, "nothing runs twice")
	require.Empty(t, manager.Ads(named(manager, "kept")), "it does not run here")
	workloadIs(manager, "Finished")
}
