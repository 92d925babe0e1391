package kueue

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// Labels, of Kueue except for the last.
const (
	QueueLabel    = "kueue.x-k8s.io/queue-name"
	PriorityLabel = "kueue.x-k8s.io/priority-class"
	uidLabel      = "kueue.x-k8s.io/job-uid"
	ourLabel      = "htc.cern.ch/htcjob" // on the Workloads of both kinds, which are all that htcd watches
)

// prebuiltKey is an annotation, in Kueue before 0.18 a label, of an HTCJob that MultiKueue has brought from another
// cluster: it names its Workload, which came before it.
const prebuiltKey = "kueue.x-k8s.io/prebuilt-workload-name"

// suspendedKey is an annotation of the Workload of an HTCJob that runs in another cluster: whether it was deactivated
// because of spec.suspend.
const suspendedKey = "htc.cern.ch/suspended"

func (w *workload) suspended() bool { return w.Annotations[suspendedKey] == "true" }

// prebuilt returns the name of the Workload that has come with an HTCJob, empty if htcd is to make one. None comes with
// an HTCWorkflow.
func prebuilt(job *v1alpha1.HTCJob) string {
	if kindOf(job) != v1alpha1.Kind {
		return ""
	}
	return cmp.Or(job.Annotations[prebuiltKey], job.Labels[prebuiltKey])
}

// kindOf returns the kind of the object: an HTCWorkflow is what its jobs are together, as an HTCJob.
func kindOf(job *v1alpha1.HTCJob) string { return cmp.Or(job.Kind, v1alpha1.Kind) }

// podSet is the name of a Workload's only set of pods.
const podSet = "main"

// gpus is the resource that an HTCJob's GPUs are for Kueue.
const gpus = corev1.ResourceName("nvidia.com/gpu")

// workload is what is read of a Workload.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Active  *bool  `json:"active"`
		PodSets []pods `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Conditions      []metav1.Condition `json:"conditions"`
		ReclaimablePods []reclaimable      `json:"reclaimablePods"`
	} `json:"status"`
}

type pods struct {
	Count    int                    `json:"count"`
	Template corev1.PodTemplateSpec `json:"template"`
}

type reclaimable struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func read(object *unstructured.Unstructured) (*workload, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var w workload
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, fmt.Errorf("read Workload %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return &w, nil
}

// nameOf returns the name of the Workload of what an HTCJob is to run: there can be only one. Unless it has come with
// the HTCJob, the name follows from what is run and from the queue.
func nameOf(job *v1alpha1.HTCJob, d lifecycle.Demand) string {
	if name := prebuilt(job); name != "" {
		return name
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", job.UID, job.Labels[QueueLabel], d.Of))
	const hashed, longest = 10, 63
	prefix := strings.ToLower(kindOf(job)) + "-"
	begin := strings.TrimRight(job.Name[:min(len(job.Name), longest-len(prefix)-hashed-1)], ".-")
	return prefix + begin + "-" + hex.EncodeToString(sum[:hashed/2])
}

// newWorkload returns the Workload of an HTCJob, whose priority is that of its class.
func newWorkload(
	apiVersion string,
	job *v1alpha1.HTCJob,
	d lifecycle.Demand,
	priority int32,
) (*unstructured.Unstructured, error) {
	labels := map[string]string{uidLabel: string(job.UID), ourLabel: "true"}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{
			{Name: podSet, Image: "htcjob", Resources: corev1.ResourceRequirements{Requests: requests(job)}},
		},
	}}
	set, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		return nil, err
	}
	w := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": "Workload",
		"spec": map[string]any{
			"queueName": job.Labels[QueueLabel],
			"priority":  int64(priority),
			"podSets": []any{
				map[string]any{"name": podSet, "count": int64(min(d.Jobs, math.MaxInt32)), "template": set},
			},
		},
	}}
	w.SetNamespace(job.Namespace)
	w.SetName(nameOf(job, d))
	w.SetLabels(labels)
	w.SetOwnerReferences(owners(job))
	return w, nil
}

// owners have a Workload go with its object, without blockOwnerDeletion, which needs a right on the finalizers of such
// objects.
func owners(job *v1alpha1.HTCJob) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{
			APIVersion: v1alpha1.GroupVersion.String(),
			Kind:       kindOf(job),
			Name:       job.Name,
			UID:        job.UID,
			Controller: new(true),
		},
	}
}

// fits reports whether a Workload has quota for all that an HTCJob asks for. Of one with parallelism, no more are sent
// at a time than it has pods.
func (w *workload) fits(job *v1alpha1.HTCJob) bool {
	needs := job.Queue()
	if job.Spec.Parallelism != nil {
		needs = 1
	}
	if len(w.Spec.PodSets) == 0 || w.pods() < needs || len(w.Spec.PodSets[0].Template.Spec.Containers) == 0 {
		return false
	}
	has := w.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests
	for name, needs := range requests(job) {
		if is := has[name]; is.Cmp(needs) < 0 {
			return false
		}
	}
	return true
}

// requests returns what each job takes of a quota. A queue needs quota of all that is requested.
func requests(job *v1alpha1.HTCJob) corev1.ResourceList {
	r := lifecycle.Takes(job.Spec.Resources, job.Spec.Nodes)
	list := corev1.ResourceList{corev1.ResourceCPU: *r.CPUs}
	if r.Memory != nil {
		list[corev1.ResourceMemory] = *r.Memory
	}
	if r.GPUs != nil && !r.GPUs.IsZero() {
		list[gpus] = *r.GPUs
	}
	return list
}
