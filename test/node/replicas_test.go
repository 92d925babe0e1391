//go:build node

package node

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
)

func TestOfTwoReplicasOneWorksUntilItIsEvicted(t *testing.T) {
	b := newBench(t)
	b.restore()
	b.htcd("scale", "deployment/htcd", "--replicas=2")
	first := b.leader(2, "")
	b.serves(first)
	b.Script("survives", "sleep 8\nexit 3\n")
	b.Until("survives", "sent", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })

	require.NoError(t, b.client.PolicyV1().Evictions(parts.PodNamespace).Evict(t.Context(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: parts.PodNamespace}}))
	second := b.leader(2, first.Name)
	b.serves(second)
	job := b.Ended("survives")
	require.EqualValues(t, []int32{0, 0, 1}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
	require.EqualValues(t, 1, job.Status.Attempt)
}

// serves waits until the Service leads to this pod alone and the Lease is its own.
func (b bench) serves(pod corev1.Pod) {
	b.T.Helper()
	b.Eventually(func() bool {
		slices, err := b.client.DiscoveryV1().EndpointSlices(parts.PodNamespace).List(b.T.Context(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=htcd"})
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
	}, func() string { return b.htcd("get", "endpointslices", "-o", "yaml") })
	lease, err := b.client.CoordinationV1().Leases(parts.PodNamespace).Get(b.T.Context(), "htcd", metav1.GetOptions{})
	require.NoError(b.T, err)
	require.Contains(b.T, *lease.Spec.HolderIdentity, pod.Name)
}

func TestAKilledHTCdIsStartedAgainInItsPod(t *testing.T) {
	b := newBench(t)
	pod := b.leader(1, "")
	restarts := pod.Status.ContainerStatuses[0].RestartCount
	lease := func() string {
		return b.htcd("get", "lease", "htcd", "-o", "jsonpath={.spec.holderIdentity} {.spec.acquireTime} {.spec.leaseTransitions}")
	}
	before := lease()
	require.Contains(t, before, string(pod.UID))
	b.Script("goes-on", "sleep 3\nexit 0\n")
	b.Until("goes-on", "sent", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })
	require.NoError(t, syscall.Kill(b.process(pod), syscall.SIGKILL))
	b.Eventually(func() bool {
		now := b.pods()
		return len(now) == 1 && now[0].Name == pod.Name && now[0].Status.ContainerStatuses[0].RestartCount == restarts+1 && ready(now[0])
	}, func() string { return b.htcd("describe", "pods") })
	require.Equal(t, before, lease(), "the Lease was taken back before it had run out")
	require.EqualValues(t, 1, b.Ended("goes-on").Status.Succeeded)
}

// A frozen htcd is told from a busy one, by the liveness probe; thawed in time it is left alone.
func TestAFrozenHTCdIsNoticed(t *testing.T) {
	b := newBench(t)
	pod := b.leader(1, "")
	pid := b.process(pod)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	b.Eventually(func() bool {
		events, err := b.client.CoreV1().Events(parts.PodNamespace).List(t.Context(),
			metav1.ListOptions{FieldSelector: "reason=Unhealthy,involvedObject.name=" + pod.Name})
		require.NoError(t, err)
		for _, event := range events.Items {
			if len(event.Message) > 8 && event.Message[:8] == "Liveness" {
				return true
			}
		}
		return false
	}, func() string { return b.htcd("get", "events") })
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	b.leader(1, "")
}
