//go:build !releases

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// These tests write status and spec as no user of htcd does, and the lab's own
// htcd must not answer. So they work on the shipped CRD under another group.

func TestSpecCannotChangeWhileJobsAreActive(t *testing.T) {
	t.Parallel()
	job := newSample(t)

	const refusal = "spec: Forbidden: the spec cannot change while jobs are active in HTCondor: wait until they end, set spec.suspend to true, or delete this HTCJob"
	const early, late = `{"spec":{"htcopts":"priority = 1"}}`, `{"spec":{"htcopts":"priority = 2"}}`

	_, err := job.patch(early)
	require.NoError(t, err, "nothing was sent yet")
	_, err = job.patch(`{"status":{"active":1}}`, "status")
	require.NoError(t, err)

	_, err = job.patch(late)
	require.ErrorContains(t, err, refusal)
	for _, edit := range []string{
		`{"spec":{"htcopts":null}}`, `{"spec":{"htcopts":""}}`, `{"spec":{"name":"x"}}`, `{"spec":{"queue":1}}`, `{"spec":{"environment":{}}}`, `{"spec":{"environment":{"A":"1"}}}`, `{"spec":{"inputs":[{"name":"a","configMapKeyRef":{"name":"a","key":"a"}}]}}`,
		`{"spec":{"resources":{"memory":"1Gi"}}}`, `{"spec":{"retries":0}}`, `{"spec":{"successExitCodes":[0]}}`, `{"spec":{"pool":{"schedd":"x"}}}`, `{"spec":{"script":{"source":"exit 1"}}}`,
	} {
		_, err = job.patch(edit)
		require.ErrorContains(t, err, refusal, edit)
	}
	_, err = job.patch(early)
	require.NoError(t, err, "a change to what stands there already is none")
	_, err = job.patch(
		`{"spec":{"suspend":true,"ttlSecondsAfterFinished":5,"activeDeadlineSeconds":5,"logsPod":true,"result":"stdout"}}`,
	)
	require.NoError(t, err, "these are not sent")
	_, err = job.patch(`{"metadata":{"labels":{"a":"b"},"finalizers":["` + v1alpha1.Finalizer + `"]}}`)
	require.NoError(t, err, "metadata may change at any time")
	_, err = job.patch(`{"metadata":{"finalizers":null}}`)
	require.NoError(t, err)

	_, err = job.patch(`{"status":{"active":0,"succeeded":1}}`, "status")
	require.NoError(t, err)
	_, err = job.patch(late)
	require.NoError(t, err, "all has ended")
}

func TestCountsArePresentFromTheFirstMoment(t *testing.T) {
	t.Parallel()
	job := newSample(t)
	require.Equal(
		t,
		map[string]any{
			"active":             int64(0),
			"succeeded":          int64(0),
			"failed":             int64(0),
			"phase":              "Pending",
			"reason":             "NoStatus",
			"observedGeneration": int64(0),
		},
		job.get().Object["status"],
	)
}

func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	t.Parallel()
	job := newSample(t)
	const everything = `{"spec":{"name":"new"},"status":{"succeeded":7}}`

	got, err := job.patch(everything, "status")
	require.NoError(t, err)
	require.Nil(t, got.Object["spec"].(map[string]any)["name"])
	require.EqualValues(t, 7, got.Object["status"].(map[string]any)["succeeded"])
	require.EqualValues(t, 1, got.GetGeneration())

	_, err = job.patch(`{"status":{"succeeded":0}}`, "status")
	require.NoError(t, err)
	got, err = job.patch(everything)
	require.NoError(t, err)
	require.Equal(t, "new", got.Object["spec"].(map[string]any)["name"])
	require.EqualValues(t, 0, got.Object["status"].(map[string]any)["succeeded"])
	require.EqualValues(t, 2, got.GetGeneration())

	_, err = job.patch(`{"status":{"phase":"Confused"}}`, "status")
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}

func TestKubectlGetShowsTheColumns(t *testing.T) {
	t.Parallel()
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)

	raw, err := client.RESTClient().Get().
		AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, v1alpha1.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	require.NoError(t, err)
	var table metav1.Table
	require.NoError(t, json.Unmarshal(raw, &table))
	var always, wide []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			always = append(always, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	require.Equal(t, []string{"Name", "Phase", "Active", "Succeeded", "Failed", "JobID", "Age"}, always)
	require.Equal(
		t,
		[]string{"Pool", "Schedd", "User", "Running", "Held", "Started", "Time", "Checked", "Reason"},
		wide,
	)

	resources, err := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	require.NoError(t, err)
	i := slices.IndexFunc(
		resources.APIResources,
		func(r metav1.APIResource) bool { return r.Name == v1alpha1.Resource },
	)
	require.Equal(t, []string{"htcj"}, resources.APIResources[i].ShortNames)
	require.Equal(t, []string{"all"}, resources.APIResources[i].Categories)
}

// A sample is one object of the CRD in trial.
type sample struct {
	t    *testing.T
	jobs dynamic.ResourceInterface
	name string
}

func (j sample) get() *unstructured.Unstructured {
	j.t.Helper()
	got, err := j.jobs.Get(j.t.Context(), j.name, metav1.GetOptions{})
	require.NoError(j.t, err)
	return got
}

func (j sample) patch(merge string, subresources ...string) (*unstructured.Unstructured, error) {
	return j.jobs.Patch(
		j.t.Context(),
		j.name,
		types.MergePatchType,
		[]byte(merge),
		metav1.PatchOptions{},
		subresources...)
}

func newSample(t *testing.T) sample {
	t.Helper()
	return sampleOf(
		t,
		v1alpha1.Resource,
		map[string]any{"script": map[string]any{"image": "centos", "command": "bash", "source": "exit 0\n"}},
	)
}

// sampleOf installs the shipped CRD of a resource under its own group, which is removed with the test, and creates one
// object of it.
func sampleOf(t *testing.T, resource string, spec map[string]any) sample {
	t.Helper()
	namespace := trial.Namespace(t)
	client, err := dynamic.NewForConfig(trial.Config(t))
	require.NoError(t, err)

	text, err := os.ReadFile("../../deploy/base/crd/htc.cern.ch_" + resource + ".yaml")
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.UnmarshalStrict(text, &crd.Object))
	// The names differ too: `kubectl get htcjob` must mean the real one meanwhile.
	group := namespace + ".test"
	crd.SetName("trials." + group)
	require.NoError(t, unstructured.SetNestedField(crd.Object, group, "spec", "group"))
	require.NoError(t, unstructured.SetNestedField(crd.Object, map[string]any{
		"kind": "Trial", "listKind": "TrialList", "plural": "trials", "singular": "trial",
	}, "spec", "names"))

	crds := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	_, err = crds.Create(t.Context(), crd, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), trial.Patience)
		defer cancel()
		require.NoError(t, crds.Delete(ctx, crd.GetName(), metav1.DeleteOptions{}))
	})

	version := schema.GroupVersion{Group: group, Version: v1alpha1.GroupVersion.Version}
	jobs := client.Resource(version.WithResource("trials")).Namespace(namespace)
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": "Trial",
		"metadata": map[string]any{"name": "trial"},
		"spec":     spec,
	}}
	// The apiserver serves a new kind a moment after accepting the CRD.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
		require.NoError(c, err)
	}, trial.Patience, 50*time.Millisecond)
	return sample{t: t, jobs: jobs, name: "trial"}
}
