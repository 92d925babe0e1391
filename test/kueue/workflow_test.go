//go:build kueue

package kueue

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// flow applies an HTCWorkflow that waits in the test's queue.
func (b bench) flow(name, spec string) {
	b.T.Helper()
	b.ApplyText(fmt.Sprintf(`
apiVersion: htc.cern.ch/v1alpha1
kind: HTCWorkflow
metadata: {name: %s, labels: {kueue.x-k8s.io/queue-name: team}}
spec: %s
`, name, spec))
}

// untilFlow waits until an HTCWorkflow is so.
func (b bench) untilFlow(name, wanted string, is func(*v1alpha1.HTCWorkflow) bool) (w *v1alpha1.HTCWorkflow) {
	b.T.Helper()
	client, err := v1alpha1.NewClient(trial.Config(b.T))
	require.NoError(b.T, err)
	b.Eventually(func() bool {
		w, err = client.Workflows(b.Namespace).Get(b.T.Context(), name, metav1.GetOptions{})
		return err == nil && is(w)
	}, func() string {
		return fmt.Sprintf(
			"%s never was %s:\n%s",
			name,
			wanted,
			b.Kubectl("get", "htcworkflows,workloads", "-o", "yaml"),
		)
	})
	return w
}

// unadmitted reports whether an HTCWorkflow waits for quota.
func unadmitted(w *v1alpha1.HTCWorkflow) bool {
	return w.Status.Phase == v1alpha1.PhaseSuspended && w.Status.Reason == "QuotaAwaited"
}

func TestAnHTCWorkflowIsAdmittedAsAWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// Three jobs at a time are too many for the queue.
	b.flow("chain", `{sequences: {count: 3}, steps: [
  {name: make, job: {script: {image: centos, command: bash, source: "exit 0"}}},
  {name: use, job: {script: {image: centos, command: bash, source: "exit 0"}}},
  {name: sum, pairing: All, job: {script: {image: centos, command: bash, source: "exit 0"}}}]}`)
	chain := b.untilFlow("chain", "waiting", unadmitted)
	require.Empty(t, chain.Status.JobID)
	b.Kubectl("patch", "htcworkflow", "chain", "--type=merge", "-p", `{"spec": {"throttle": {"maxJobs": 2}}}`)
	chain = b.untilFlow("chain", "ended", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase.Terminal() })
	require.Equal(t, v1alpha1.PhaseSucceeded, chain.Status.Phase)
	require.EqualValues(t, 1, chain.Status.Attempt)
	b.Eventually(
		func() bool { return meta.IsStatusConditionTrue(b.workloadOf(chain.UID).Status.Conditions, "Finished") },
		func() string { return b.Kubectl("get", "workloads", "-o", "yaml") },
	)
	require.Equal(t, 2, b.workloadOf(chain.UID).Spec.PodSets[0].Count)

	// The first of two sequences ends, and gives back its share.
	b.flow("pair", `{sequences: {count: 2}, steps: [
  {name: work, job: {script: {image: centos, command: bash, source: "[ $jobid = job_0 ] || sleep 1000"}}}]}`)
	b.Script("second", "exit 0\n", queued)
	require.EqualValues(t, 1, b.Ended("second").Status.Succeeded)
	pair := b.untilFlow("pair", "half done", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Nodes.Running == 1 })
	require.EqualValues(t, 1, pair.Status.Attempt)
	require.Equal(t, 1, b.workloadOf(pair.UID).Status.ReclaimablePods[0].Count)

	// A job of higher priority evicts it: then all of it runs again, for which it needs quota for both.
	b.Script("high", long, trial.Queue(2), queued, urgent)
	b.runs("high")
	b.untilFlow("pair", "evicted", unadmitted)
	require.Empty(t, b.Queued(fmt.Sprintf("HTCWorkflowUID == %[1]q || HTCJobUID == %[1]q", pair.UID)))
	require.Zero(t, b.workloadOf(pair.UID).Status.ReclaimablePods[0].Count)
	b.Kubectl("delete", "htcjob", "high", "--timeout=2m")
	pair = b.untilFlow(
		"pair",
		"running again",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Attempt == 2 && w.Status.Nodes.Running > 0 },
	)
	require.False(t, pair.Spec.Suspend, "the user's own field")
	b.Kubectl("delete", "htcworkflow", "pair", "--timeout=2m")
}
