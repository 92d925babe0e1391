package logspod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Maker makes the Pods, and the ConfigMaps that they print.
type Maker struct {
	Image  string // htcd's own; empty: not enabled by the administrator
	Client interface {
		typedcorev1.PodsGetter
		typedcorev1.ConfigMapsGetter
	}
}

// ReasonWaiting: a Pod will be made, but not yet.
const ReasonWaiting = "Waiting"

// obstacle is what prevents a Pod, in words for the user.
type obstacle struct{ reason, message string }

func (e *obstacle) Error() string { return e.message }

// Explain returns what prevents a Pod, as a condition's reason and message.
func Explain(err error) (reason, message string) {
	switch e, ok := errors.AsType[*obstacle](err); {
	case ok:
		return e.reason, e.message
	case apierrors.IsForbidden(err):
		return "Forbidden", fmt.Sprintf("%v; does htcd have the rules of deploy/components/logs-pod?", err)
	case apierrors.IsInvalid(err):
		return "Invalid", err.Error()
	}
	return "Retrying", err.Error()
}

// Reach takes one step after another towards a goal, each decided by the existing objects. compose makes the text.
func (m Maker) Reach(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	g Goal,
	compose func() (map[string][]byte, error),
) error {
	pods, texts := m.Client.Pods(job.Namespace), m.Client.ConfigMaps(job.Namespace)
	pod, err := orNil(pods.Get(ctx, job.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("look for the Pod: %w", err)
	}
	text, err := orNil(texts.Get(ctx, TextName(job.Name), metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("look for the ConfigMap: %w", err)
	}
	for range mostSteps {
		do := next(g, pod, text)
		switch do {
		case reached:
			return nil
		case taken:
			return &obstacle{
				"NameTaken",
				fmt.Sprintf(
					"there is a Pod %s or a ConfigMap %s that is not this HTCJob's; it is left as it is: delete it, or set spec.logsPod to false",
					job.Name,
					TextName(job.Name),
				),
			}
		case leaving:
			return &obstacle{ReasonWaiting, "the previous Pod is being deleted"}
		case deletePod:
			if err = gone(pods.Delete(ctx, pod.Name, only(pod.UID))); err == nil {
				pod, err = orNil(pods.Get(ctx, job.Name, metav1.GetOptions{})) // it may take a while
			}
		case deleteText:
			err = gone(texts.Delete(ctx, text.Name, only(text.UID)))
			text = nil
		case createText:
			var files map[string][]byte
			if files, err = compose(); err == nil {
				text, err = texts.Create(ctx, newText(job, g, files), metav1.CreateOptions{})
			}
		case createPod:
			pod, err = pods.Create(ctx, newPod(job, g, m.Image), metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", do, err)
		}
	}
	return &obstacle{ReasonWaiting, "somebody else also changes the Pod"}
}

// orNil returns nil for an object that does not exist.
func orNil[T corev1.Pod | corev1.ConfigMap](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// gone treats a missing object as deleted.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// only deletes this object, and no younger one of its name.
func only(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}
