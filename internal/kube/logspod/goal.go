package logspod

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Goal is the wanted state of the Pod of an HTCJob: it shows an attempt and its result, or there is none.
type Goal struct {
	UID       types.UID // of the HTCJob
	None      bool
	Attempt   int
	Succeeded bool
}

// exitCode is what the Pod ends with.
func (g Goal) exitCode() int {
	if g.Succeeded {
		return 0
	}
	return 1
}

// step is the next step towards a goal.
type step string

const (
	reached    step = "reached"
	taken      step = "taken"   // somebody else's object has the name
	leaving    step = "leaving" // what is being deleted is still there
	deletePod  step = "delete the Pod"
	deleteText step = "delete the ConfigMap"
	createText step = "create the ConfigMap"
	createPod  step = "create the Pod"
	mostSteps       = 6
)

// next decides by the existing objects, nil if there are none. It never touches objects that are not this HTCJob's.
func next(g Goal, pod *corev1.Pod, text *corev1.ConfigMap) step {
	ours := func(o metav1.Object) bool {
		owner := metav1.GetControllerOf(o)
		return owner != nil && owner.UID == g.UID
	}
	isOf := func(o metav1.Object) bool {
		return o.GetAnnotations()[v1alpha1.AttemptAnnotation] == strconv.Itoa(g.Attempt)
	}
	if g.None {
		switch {
		case pod != nil && ours(pod) && pod.DeletionTimestamp == nil:
			return deletePod
		case text != nil && ours(text) && text.DeletionTimestamp == nil:
			return deleteText
		}
		return reached
	}
	switch {
	case pod != nil && !ours(pod), text != nil && !ours(text):
		return taken
	case pod != nil && pod.DeletionTimestamp != nil, text != nil && text.DeletionTimestamp != nil:
		return leaving
	case pod != nil && (!isOf(pod) || exitCodeOf(pod) != g.exitCode()):
		return deletePod
	case text != nil && !isOf(text):
		return deleteText
	case text == nil:
		return createText
	case pod == nil:
		return createPod
	}
	return reached
}

func args(g Goal) []string {
	return []string{"print", fmt.Sprintf("--exit-code=%d", g.exitCode()), mount}
}

// exitCodeOf is the exit code of a Pod of ours, -1 if it is unclear.
func exitCodeOf(pod *corev1.Pod) int {
	for _, succeeded := range []bool{true, false} {
		g := Goal{Succeeded: succeeded}
		if len(pod.Spec.Containers) > 0 && slices.Equal(pod.Spec.Containers[0].Args, args(g)) {
			return g.exitCode()
		}
	}
	return -1
}
