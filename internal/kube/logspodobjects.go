package kube

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// logsMount is where the Pod finds its text.
const logsMount = "/log"

// logsTextName is what the ConfigMap is called.
func logsTextName(job string) string { return job + "-logs" }

// logsMeta is what both objects have: whose they are and of which attempt. Nothing blocks the owner's deletion: that would
// take the right to change its finalizers, where the apiserver is strict.
func logsMeta(job *v1alpha1.HTCJob, name string, g logsGoal) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(job, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	owner.BlockOwnerDeletion = nil
	return metav1.ObjectMeta{
		Namespace: job.Namespace, Name: name,
		Labels:          map[string]string{"app.kubernetes.io/managed-by": "htcd"},
		Annotations:     map[string]string{v1alpha1.AttemptAnnotation: strconv.Itoa(g.attempt)},
		OwnerReferences: []metav1.OwnerReference{*owner},
	}
}

// logsText is the ConfigMap.
func logsText(job *v1alpha1.HTCJob, g logsGoal, files map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: logsMeta(job, logsTextName(job.Name), g), Immutable: new(true), BinaryData: files}
}

// logsPod prints the text and ends. It has no rights and needs no network, and fits the strictest Pod Security standard.
func logsPod(job *v1alpha1.HTCJob, g logsGoal, image string) *corev1.Pod {
	const user = 10001 // as in htcd's image; any other would do
	return &corev1.Pod{
		ObjectMeta: logsMeta(job, job.Name, g),
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "log", Image: image, Args: logsArgs(g),
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "log", MountPath: logsMount, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "log", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: logsTextName(job.Name)},
			}}}},
		},
	}
}

func logsArgs(g logsGoal) []string {
	return []string{"print", fmt.Sprintf("--exit-code=%d", g.exitCode()), logsMount}
}

// exitCodeOf is what a Pod of ours ends with, -1 when it is not clear.
func exitCodeOf(pod *corev1.Pod) int {
	for _, code := range []int{0, 1} {
		want := logsArgs(logsGoal{phase: map[int]v1alpha1.Phase{0: v1alpha1.PhaseSucceeded}[code]})
		if len(pod.Spec.Containers) > 0 && slices.Equal(pod.Spec.Containers[0].Args, want) {
			return code
		}
	}
	return -1
}
