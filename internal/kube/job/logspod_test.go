package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/logspod"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// newWorldWithPods returns a world whose htcd creates the Pods of spec.logsPod in a fake apiserver.
func newWorldWithPods(t *testing.T) (*world, *fake.Clientset) {
	w := newWorldWithOutput(t)
	client := fake.NewClientset()
	w.LogsPods = logspod.Maker{Image: "registry.test/htcd:v1", Client: client.CoreV1()}
	return w, client
}

func withLogsPod(job *v1alpha1.HTCJob) { job.Spec.LogsPod = true }

// ignoreMissing returns nil for an object that does not exist.
func ignoreMissing[T any](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// left returns the Pod and the ConfigMap of an HTCJob, nil for one that does not exist.
func (w *world) left(name string) (*corev1.Pod, *corev1.ConfigMap) {
	w.t.Helper()
	pod, err := ignoreMissing(w.LogsPods.Client.Pods("default").Get(w.t.Context(), name, metav1.GetOptions{}))
	require.NoError(w.t, err)
	text, err := ignoreMissing(
		w.LogsPods.Client.ConfigMaps("default").Get(w.t.Context(), logspod.TextName(name), metav1.GetOptions{}),
	)
	require.NoError(w.t, err)
	return pod, text
}

// saysOfPod returns the condition LogsPod as "status reason".
func (w *world) saysOfPod(name string) string {
	c := condition(w.job(name), v1alpha1.ConditionLogsPod)
	return string(c.Status) + " " + c.Reason
}

func TestAPodWithTheOutputIsLeftAndReplacedByTheNextAttempts(t *testing.T) {
	w, client := newWorldWithPods(t)
	w.apply(htcjob("one", withLogsPod))
	require.Equal(t, "False Waiting", w.saysOfPod("one"))
	require.Empty(t, client.Actions(), "nothing is asked before the end")
	w.completed(1)
	w.crosscheck()
	pod, text := w.left("one")
	require.Equal(t, "True Ready", w.saysOfPod("one"))
	require.Equal(t, map[string][]byte{"00000.out": []byte("out of 1.0\n")}, text.BinaryData)
	require.True(t, *text.Immutable)
	require.Equal(t, []string{"print", "--exit-code=0", "/log"}, pod.Spec.Containers[0].Args)
	for _, object := range []metav1.Object{pod, text} {
		require.True(t, metav1.IsControlledBy(object, w.job("one")))
		require.Nil(t, object.GetOwnerReferences()[0].BlockOwnerDeletion)
	}
	client.ClearActions()
	w.crosscheck()
	w.later(time.Hour)
	w.restart()
	w.settle()
	require.Empty(t, client.Actions(), "it is known to be there")

	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Script.Source = "exit 3\n" })
	require.Equal(t, "False Waiting", w.saysOfPod("one"))
	kept, _ := w.left("one")
	require.Equal(t, pod.UID, kept.UID)
	require.Equal(t, "1", kept.Annotations[v1alpha1.AttemptAnnotation])
	w.later(2 * recovery.AbsentTwice) // nobody else has sent one since
	w.completed(2, 3)
	w.crosscheck()
	pod, text = w.left("one")
	require.Equal(t, "2", pod.Annotations[v1alpha1.AttemptAnnotation])
	require.Equal(t, []string{"print", "--exit-code=1", "/log"}, pod.Spec.Containers[0].Args)
	require.Equal(t, "out of 2.0\n", string(text.BinaryData["00000.out"]))
	require.Equal(t, "True Ready", w.saysOfPod("one"))
}

func TestThePodFollowsAnEditAfterTheEnd(t *testing.T) {
	w, client := newWorldWithPods(t)
	w.apply(htcjob("one", queueOf(2)))
	w.completed(1)
	w.crosscheck()
	require.Empty(t, client.Actions(), "who does not want it is not asked for")
	require.Empty(t, condition(w.job("one"), v1alpha1.ConditionLogsPod).Type)

	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = true })
	pod, text := w.left("one")
	require.NotNil(t, pod)
	require.Contains(t, string(text.BinaryData["00000.out"]), "==> 1.0 <==\nout of 1.0\n")

	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = false })
	pod, text = w.left("one")
	require.Nil(t, pod)
	require.Nil(t, text)
	require.Nil(t, meta.FindStatusCondition(w.job("one").Status.Conditions, v1alpha1.ConditionLogsPod))
	client.ClearActions()
	w.later(time.Hour)
	require.Empty(t, client.Actions())

	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = true })
	pod, _ = w.left("one")
	require.NotNil(t, pod)
	require.EqualValues(t, 1, w.job("one").Status.Attempt)
}

func TestAPodOfOthersIsLeftAlone(t *testing.T) {
	w, _ := newWorldWithPods(t)
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", UID: "theirs"}}
	_, err := w.LogsPods.Client.Pods("default").Create(t.Context(), theirs, metav1.CreateOptions{})
	require.NoError(t, err)
	w.apply(htcjob("one", withLogsPod))
	w.completed(1)
	w.crosscheck()
	require.Equal(t, "False NameTaken", w.saysOfPod("one"))
	require.Contains(t, w.events[len(w.events)-1], "Warning LogsPodNameTaken: there is a Pod one")
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = false })
	pod, text := w.left("one")
	require.EqualValues(t, "theirs", pod.UID)
	require.Nil(t, text)

	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = true })
	require.NoError(t, w.LogsPods.Client.Pods("default").Delete(t.Context(), "one", metav1.DeleteOptions{}))
	w.logs.Add("default/one") // after its back-off
	w.settle()
	require.Equal(t, "True Ready", w.saysOfPod("one"))
}

func TestWhereItIsNotTurnedOnTheUserIsTold(t *testing.T) {
	w, client := newWorldWithPods(t)
	w.LogsPods.Image = ""
	w.apply(htcjob("one", withLogsPod))
	w.completed(1)
	w.crosscheck()
	require.Equal(t, "False NotEnabled", w.saysOfPod("one"))
	require.Empty(t, client.Actions())
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = false })
	require.Nil(t, meta.FindStatusCondition(w.job("one").Status.Conditions, v1alpha1.ConditionLogsPod))

	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.LogsPod = true })
	w.LogsPods.Image = "registry.test/htcd:v1"
	w.restart()
	w.settle()
	require.Equal(t, "True Ready", w.saysOfPod("one"))
}

func TestAPodOfWhatLeftNoOutputSaysWhy(t *testing.T) {
	w, _ := newWorldWithPods(t)
	w.apply(htcjob("one", withLogsPod))
	require.NoError(
		t,
		scheddtest.Err(
			w.schedd.Change(
				t.Context(),
				schedd.Identity{},
				schedd.Remove{Where: condor.UIDConstraint("uid-one"), Reason: "enough"},
			),
		),
	)
	w.crosscheck()
	_, text := w.left("one")
	require.Contains(t, string(text.BinaryData["00000.err"]), "no output of job 1.0: ")

	w.apply(htcjob("bad", withLogsPod, func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "executable = /bin/id\n" }))
	pod, text := w.left("bad")
	require.Contains(t, string(text.BinaryData["00000.err"]), "htcd: Refused: ")
	require.Equal(t, "--exit-code=1", pod.Spec.Containers[0].Args[1])
}

func TestWhereverItIsBrokenOffThePodIsMadeOnce(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		for _, kind := range []string{"pods", "configmaps"} {
			for _, done := range []bool{false, true} {
				t.Run(verb+" "+kind, func(t *testing.T) {
					w, client := newWorldWithPods(t)
					broken := false
					client.PrependReactor(verb, kind, func(a clienttesting.Action) (bool, runtime.Object, error) {
						if broken {
							return false, nil, nil
						}
						broken = true
						if create, ok := a.(clienttesting.CreateAction); ok && done {
							require.NoError(t, client.Tracker().Create(a.GetResource(), create.GetObject(), "default"))
						}
						return true, nil, errBroken
					})
					w.apply(htcjob("one", withLogsPod))
					w.completed(1)
					w.crosscheck()
					require.Equal(t, "False Retrying", w.saysOfPod("one"))
					w.restart()
					w.settle()
					require.Equal(t, "True Ready", w.saysOfPod("one"))
					pod, text := w.left("one")
					require.NotNil(t, pod)
					require.NotNil(t, text)
				})
			}
		}
	}
}
