//go:build !releases

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// podLeft waits until the Pod of spec.logsPod exists, and returns it with its text.
func podLeft(b *trial.Bench, name string, attempt int32) (*corev1.Pod, *corev1.ConfigMap) {
	b.T.Helper()
	client, err := kubernetes.NewForConfig(trial.Config(b.T))
	require.NoError(b.T, err)
	b.Until(name, "left as a Pod", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Attempt == attempt &&
			meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionLogsPod)
	})
	pod, err := client.CoreV1().Pods(b.Namespace).Get(b.T.Context(), name, metav1.GetOptions{})
	require.NoError(b.T, err)
	text, err := client.CoreV1().ConfigMaps(b.Namespace).Get(b.T.Context(), name+"-logs", metav1.GetOptions{})
	require.NoError(b.T, err)
	return pod, text
}

// Pod Security enforces the strictest standard in the namespace. Nothing runs Pods here; test/node has a kubelet.
func TestAPodWithTheOutputIsLeft(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Apply("logspod.yaml")
	pod, text := podLeft(b, "logspod", 1)
	require.Equal(t, "==> "+b.Get("logspod").Status.JobID[0]+" <==\nHello from job number 0\n==> "+
		b.Get("logspod").Status.JobID[1]+" <==\nHello from job number 1\n", string(text.BinaryData["00000.out"]))
	require.Contains(t, pod.Spec.Containers[0].Args, "--exit-code=0")
	require.Empty(t, pod.Spec.Volumes[1:], "no token")

	b.Kubectl(
		"patch",
		"htcjob",
		"logspod",
		"--type=merge",
		"-p",
		`{"spec":{"script":{"queue":1,"source":"echo again; exit 3\n"}}}`,
	)
	again, text := podLeft(b, "logspod", 2)
	require.NotEqual(t, pod.UID, again.UID)
	require.Equal(t, "again\n", string(text.BinaryData["00000.out"]))
	require.Contains(t, again.Spec.Containers[0].Args, "--exit-code=1")

	b.Kubectl("delete", "htcjob", "logspod", "--timeout="+trial.Patience.String())
	b.Eventually(func() bool {
		return !strings.Contains(b.Kubectl("get", "pods,configmaps", "-o", "name"), "logspod")
	}, func() string { return b.Kubectl("get", "pods,configmaps") })
}

func TestAPodOfOthersKeepsItsNameAndAnEditTakesOursAway(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("first", "echo out; echo err >&2\n", func(job *v1alpha1.HTCJob) { job.Spec.LogsPod = true })
	ours, text := podLeft(b, "first", 1)
	require.Equal(t, map[string][]byte{"00000.out": []byte("out\n"), "00001.err": []byte("err\n")}, text.BinaryData)

	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: ours.Spec}
	theirs.Spec.NodeName = ""
	theirs, err = client.CoreV1().Pods(b.Namespace).Create(t.Context(), theirs, metav1.CreateOptions{})
	require.NoError(t, err)
	b.Script("second", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.LogsPod = true })
	said := b.Condition(b.Until("second", "in need of another name", func(job *v1alpha1.HTCJob) bool {
		c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionLogsPod)
		return c != nil && c.Reason == "NameTaken"
	}), v1alpha1.ConditionLogsPod)
	require.Contains(t, b.Kubectl("describe", "htcjob", "second"), said.Message)
	require.Contains(t, b.Kubectl("get", "pod", "second", "-o", "jsonpath={.metadata.uid}"), string(theirs.UID))

	b.Kubectl("patch", "htcjob", "first", "--type=merge", "-p", `{"spec":{"logsPod":false}}`)
	job := b.Until("first", "without its Pod", func(job *v1alpha1.HTCJob) bool {
		return meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionLogsPod) == nil
	})
	require.EqualValues(t, 1, job.Status.Attempt)
	require.Empty(
		t,
		b.Kubectl(
			"get",
			"pod",
			"first",
			"--ignore-not-found",
		)+b.Kubectl(
			"get",
			"configmap",
			"first-logs",
			"--ignore-not-found",
		),
	)
}
