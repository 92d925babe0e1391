//go:build node

package node

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// Both of two replicas are ready, so that a rollout ends, and the Services lead to the active one:
// the first, then the second after an eviction, and still the second after its process was killed.
func TestOfTwoReplicasOneWorks(t *testing.T) {
	b := newBench(t)
	b.twoReplicas()
	b.htcd("rollout", "status", "deployment/htcd", "--timeout="+trial.Patience.String())
	first := b.leader(2, "")
	b.serves(first)
	b.Script("survives", "sleep 8\necho said\nexit 3\n")
	b.Until("survives", "sent", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })

	require.NoError(t, b.client.PolicyV1().Evictions(parts.PodNamespace).Evict(t.Context(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: parts.PodNamespace}}))
	second := b.leader(2, first.Name)
	b.serves(second)
	job := b.Ended("survives")
	require.EqualValues(t, []int32{0, 0, 1}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
	require.EqualValues(t, 1, job.Status.Attempt)
	b.reads("survives", "said\n")

	b.Script("again", "sleep 8\necho again\n")
	b.Until("again", "sent", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })
	require.NoError(t, syscall.Kill(b.process(second), syscall.SIGKILL))
	require.EqualValues(t, 1, b.Ended("again").Status.Succeeded)
	b.reads("again", "again\n")
	third := b.leader(2, "")
	b.serves(third)
	b.htcd("rollout", "status", "deployment/htcd", "--timeout="+trial.Patience.String())
}

// A standby without the right to remove its label cannot become ready: the Services would lead to it.
func TestAStandbyThatMayNotTakeItsLabelOffIsNotReady(t *testing.T) {
	b := newBench(t)
	b.twoReplicas()
	leader := b.leader(2, "")
	b.htcd(
		"patch",
		"role",
		"htcd",
		"--type=json",
		"-p",
		`[{"op": "test", "path": "/rules/3/resources/0", "value": "pods"}, {"op": "remove", "path": "/rules/3"}]`,
	)
	for _, pod := range b.pods() {
		if pod.Name == leader.Name {
			continue
		}
		b.htcd("delete", "pod", pod.Name)
	}
	b.Eventually(func() bool {
		for _, pod := range b.pods() {
			if pod.Name != leader.Name && pod.Status.Phase == corev1.PodRunning {
				logs, err := b.Lab.Run(t.Context(), "kubectl", "-n", parts.PodNamespace, "logs", pod.Name)
				return err == nil &&
					strings.Contains(logs, "the label by which Services find the active htcd is not set") &&
					!ready(pod)
			}
		}
		return false
	}, func() string { return b.htcd("describe", "pods") })
}

// twoReplicas scales htcd to two until the test ends.
func (b bench) twoReplicas() {
	b.T.Helper()
	b.T.Cleanup(func() {
		for _, args := range [][]string{{"apply", "-k", b.Lab.Path("node", "overlay")}, {"rollout", "status", "deployment/htcd", "--timeout=" + trial.Patience.String()}} {
			_, err := b.Lab.Run(
				context.WithoutCancel(b.T.Context()),
				"kubectl",
				append([]string{"-n", parts.PodNamespace}, args...)...)
			require.NoError(b.T, err)
		}
	})
	b.htcd("scale", "deployment/htcd", "--replicas=2")
}

// serves waits until both Services lead only to this pod.
func (b bench) serves(pod corev1.Pod) {
	b.T.Helper()
	for _, service := range []string{"htcd", "htcd-output"} {
		b.Eventually(func() bool {
			slices, err := b.client.DiscoveryV1().EndpointSlices(parts.PodNamespace).List(b.T.Context(),
				metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
			require.NoError(b.T, err)
			var to []string
			for _, slice := range slices.Items {
				for _, endpoint := range slice.Endpoints {
					if *endpoint.Conditions.Ready {
						to = append(to, endpoint.TargetRef.Name)
					}
				}
			}
			return len(to) == 1 && to[0] == pod.Name
		}, func() string { return b.htcd("get", "endpointslices,pods", "-o", "yaml") })
	}
}

// reads waits for the output of an HTCJob, read through the Service htcd-output.
func (b bench) reads(name, output string) {
	b.T.Helper()
	b.Until(name, "fetched", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	})
	var out string
	b.Eventually(func() bool {
		var err error
		out, err = b.Lab.Run(b.T.Context(), "kubectl", "get", "--raw",
			"/apis/output.htc.cern.ch/v1alpha1/namespaces/"+b.Namespace+"/htcjobs/"+name+"/log")
		return err == nil
	}, func() string { return b.htcd("get", "apiservices,endpointslices", "-o", "yaml") })
	require.Equal(b.T, output, out)
}

func TestAKilledHTCdIsStartedAgainInItsPod(t *testing.T) {
	b := newBench(t)
	pod := b.leader(1, "")
	restarts := pod.Status.ContainerStatuses[0].RestartCount
	lease := func() string {
		return b.htcd(
			"get",
			"lease",
			"htcd",
			"-o",
			"jsonpath={.spec.holderIdentity} {.spec.acquireTime} {.spec.leaseTransitions}",
		)
	}
	before := lease()
	require.Contains(t, before, string(pod.UID))
	b.Script("goes-on", "sleep 3\nexit 0\n")
	b.Until("goes-on", "sent", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })
	require.NoError(t, syscall.Kill(b.process(pod), syscall.SIGKILL))
	b.Eventually(func() bool {
		now := b.pods()
		return len(now) == 1 && now[0].Name == pod.Name &&
			now[0].Status.ContainerStatuses[0].RestartCount == restarts+1 &&
			ready(now[0])
	}, func() string { return b.htcd("describe", "pods") })
	require.Equal(t, before, lease(), "the Lease was taken back before it had run out")
	require.EqualValues(t, 1, b.Ended("goes-on").Status.Succeeded)
}

// The liveness probe distinguishes a frozen htcd from a busy one: the kubelet tells it to end, and starts another.
func TestAFrozenHTCdIsNoticed(t *testing.T) {
	b := newBench(t)
	pod := b.leader(1, "")
	pid := b.process(pod)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	events := func() string { return b.htcd("get", "events") }
	b.Eventually(func() bool { return toEnd(pid) }, events) // of a pod that has had many Events, the kubelet drops some
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	b.Eventually(func() bool {
		now := b.pods()
		return len(now) == 1 &&
			now[0].Status.ContainerStatuses[0].RestartCount > pod.Status.ContainerStatuses[0].RestartCount
	}, events)
	b.leader(1, "")
}

// toEnd reports whether somebody has told a stopped process to end.
func toEnd(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true // gone
	}
	_, rest, _ := strings.Cut(string(status), "ShdPnd:\t")
	pending, _ := strconv.ParseUint(strings.SplitN(rest, "\n", 2)[0], 16, 64)
	return pending&(1<<(syscall.SIGTERM-1)) != 0
}
