package logspod

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func named(name string) *v1alpha1.HTCJob {
	return &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
	}
}

func TestTheNextStepOfAPod(t *testing.T) {
	job := named("one")
	first := Goal{UID: job.UID, Attempt: 1, Succeeded: true}
	second, failed, none := first, first, Goal{UID: job.UID, None: true}
	second.Attempt, failed.Succeeded = 2, false
	pod, text := newPod(job, first, "image"), newText(job, first, nil)
	going, other, otherText := pod.DeepCopy(), newPod(
		named("other"),
		first,
		"image",
	), newText(
		named("other"),
		first,
		nil,
	)
	going.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		goal Goal
		pod  *corev1.Pod
		text *corev1.ConfigMap
		want step
	}{
		"nothing is there":                                {first, nil, nil, createText},
		"the text is there":                               {first, nil, text, createPod},
		"both are there":                                  {first, pod, text, reached},
		"somebody deleted the text":                       {first, pod, nil, createText},
		"both are of the attempt before":                  {second, pod, text, deletePod},
		"the text is of the attempt before":               {second, nil, text, deleteText},
		"HTCondor said later that it had failed":          {failed, pod, text, deletePod},
		"the Pod is on its way out":                       {first, going, text, leaving},
		"the Pod is somebody else's":                      {first, other, nil, taken},
		"the ConfigMap is somebody else's":                {first, nil, otherText, taken},
		"both shall go":                                   {none, pod, text, deletePod},
		"the Pod is going":                                {none, going, text, deleteText},
		"both are gone":                                   {none, nil, nil, reached},
		"both shall go, and are somebody else's to begin": {none, other, otherText, reached},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, next(c.goal, c.pod, c.text)) })
	}
}

func TestWhatIsInTheWayOfAPodIsSaidInWords(t *testing.T) {
	reason, message := Explain(apierrors.NewForbidden(corev1.Resource("pods"), "one", errors.New("no such right")))
	require.Equal(t, "Forbidden", reason)
	require.Contains(t, message, "deploy/components/logs-pod")
	reason, _ = Explain(errors.New("broken"))
	require.Equal(t, "Retrying", reason)
}
