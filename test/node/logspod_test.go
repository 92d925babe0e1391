//go:build node

package node

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// The first experiment of a thesis on such an operator: a job whose output plain kubectl logs shows.
func TestOutputIsReadWithKubectlLogs(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		queue  int32
		logs   func(id []string) string
		phase  corev1.PodPhase
	}{
		"simple":  {"echo Hello from HTCondor\n", 1, func([]string) string { return "Hello from HTCondor\n" }, corev1.PodSucceeded},
		"failing": {"echo begun\necho oops >&2\nexit 3\n", 1, func([]string) string { return "begun\noops\n" }, corev1.PodFailed},
		"three": {"echo \"I am $1\"\n", 3, func(id []string) string {
			return fmt.Sprintf("==> %s <==\nI am 0\n==> %s <==\nI am 1\n==> %s <==\nI am 2\n", id[0], id[1], id[2])
		}, corev1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Script(name, c.source, trial.Queue(c.queue), func(job *v1alpha1.HTCJob) { job.Spec.LogsPod = true })
			job := b.Until(name, "left as a Pod", func(job *v1alpha1.HTCJob) bool {
				return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionLogsPod)
			})
			b.Eventually(func() bool {
				pod, err := b.client.CoreV1().Pods(b.Namespace).Get(t.Context(), name, metav1.GetOptions{})
				require.NoError(t, err)
				return pod.Status.Phase == c.phase
			}, func() string { return b.Kubectl("describe", "pod", name) })
			require.Equal(t, c.logs(job.Status.JobID), b.Kubectl("logs", name))
		})
	}
}
