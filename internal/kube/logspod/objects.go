package logspod

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// mount is where the Pod finds its text.
const mount = "/log"

// TextName is what the ConfigMap is called.
func TextName(job string) string { return job + "-logs" }

// objectMeta is common to both objects: their owner and attempt. Nothing blocks the owner's deletion: that would need
// the right to change its finalizers, where the apiserver is strict.
func objectMeta(job *v1alpha1.HTCJob, name string, g Goal) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(job, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	owner.BlockOwnerDeletion = nil
	return metav1.ObjectMeta{
		Namespace: job.Namespace, Name: name,
		Labels:          map[string]string{"app.kubernetes.io/managed-by": "htcd"},
		Annotations:     map[string]string{v1alpha1.AttemptAnnotation: strconv.Itoa(g.Attempt)},
		OwnerReferences: []metav1.OwnerReference{*owner},
	}
}

// newText is the ConfigMap.
func newText(job *v1alpha1.HTCJob, g Goal, files map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: objectMeta(job, TextName(job.Name), g),
		Immutable:  new(true),
		BinaryData: files,
	}
}

// newPod prints the text and ends. It has no rights and needs no network, and fits the strictest Pod Security standard.
func newPod(job *v1alpha1.HTCJob, g Goal, image string) *corev1.Pod {
	const user = 10001 // as in htcd's image; any other would do
	return &corev1.Pod{
		ObjectMeta: objectMeta(job, job.Name, g),
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
				Name: "log", Image: image, Args: args(g),
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{
						corev1.ResourceCPU:    resource.MustParse("1m"),
						corev1.ResourceMemory: resource.MustParse("16Mi"),
					},
					Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "log", MountPath: mount, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{
				{Name: "log", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: TextName(job.Name)},
				}}},
			},
		},
	}
}
