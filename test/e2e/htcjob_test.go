package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// These tests play the operator themselves, in a namespace of their own that
// is gone at the end; where htcd itself runs too, it must not watch that one.

func TestSpecCannotChangeWhileJobsAreActive(t *testing.T) {
	t.Parallel()
	jobs := jobsInOwnNamespace(t)
	job := create(t, jobs, "edited")

	const refusal = "the spec cannot change while jobs are active in HTCondor: wait until they end, or delete this HTCJob"
	edit := func(source string) error {
		_, err := jobs.Patch(t.Context(), job.Name, types.MergePatchType,
			[]byte(`{"spec":{"script":{"source":"`+source+`"}}}`), metav1.PatchOptions{})
		return err
	}
	report := func(active, succeeded int32) {
		current, err := jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
		require.NoError(t, err)
		current.Status.Active, current.Status.Succeeded = active, succeeded
		_, err = jobs.UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
		require.NoError(t, err)
	}

	require.NoError(t, edit("echo before anything was sent"))
	report(1, 0)
	require.ErrorContains(t, edit("echo too late"), refusal)
	require.NoError(t, edit("echo before anything was sent"), "an apply that changes nothing goes through")
	_, err := jobs.Patch(t.Context(), job.Name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"},"finalizers":["`+v1alpha1.Finalizer+`"]}}`), metav1.PatchOptions{})
	require.NoError(t, err, "metadata changes at any time")
	report(0, 1)
	require.NoError(t, edit("echo again"))
}

func TestCountsArePresentFromTheFirstMoment(t *testing.T) {
	t.Parallel()
	jobs := jobsInOwnNamespace(t)
	create(t, jobs, "counted")

	job, err := jobs.Get(t.Context(), "counted", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending}, job.Status)

	job.Status = v1alpha1.HTCJobStatus{Succeeded: 1, JobID: v1alpha1.JobIDs(884426, 1), Phase: v1alpha1.PhaseSucceeded}
	_, err = jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err)
	job, err = jobs.Get(t.Context(), "counted", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"884426.0"}, job.Status.JobID)
	require.EqualValues(t, 1, job.Status.Succeeded)
}

func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	t.Parallel()
	jobs := jobsInOwnNamespace(t)
	job := create(t, jobs, "apart")

	job.Status.Succeeded = 7
	job.Spec.HTCOpts = "request_cpus = 2\n"
	job, err := jobs.Update(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Zero(t, job.Status.Succeeded)
	require.EqualValues(t, 2, job.Generation)

	job.Status.Succeeded = 1
	job.Spec.HTCOpts = ""
	job, err = jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, job.Status.Succeeded)
	require.Equal(t, "request_cpus = 2\n", job.Spec.HTCOpts)
	require.EqualValues(t, 2, job.Generation)

	job.Status.Phase = "Confused"
	_, err = jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}

func TestInformerSeesEveryChange(t *testing.T) {
	t.Parallel()
	client, namespace := ownNamespace(t)
	jobs := client.HTCJobs(namespace)
	informer := client.NewInformer(namespace, 0)
	phases := make(chan v1alpha1.Phase, 10)
	gone := make(chan string, 1)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { phases <- o.(*v1alpha1.HTCJob).Status.Phase },
		UpdateFunc: func(_, o any) { phases <- o.(*v1alpha1.HTCJob).Status.Phase },
		DeleteFunc: func(o any) { gone <- o.(*v1alpha1.HTCJob).Name },
	})
	require.NoError(t, err)
	go informer.RunWithContext(t.Context())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))

	job := create(t, jobs, "watched")
	require.Equal(t, v1alpha1.PhasePending, <-phases)
	job.Status.Phase = v1alpha1.PhaseRunning
	_, err = jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, v1alpha1.PhaseRunning, <-phases)

	cached, err := v1alpha1.NewLister(informer.GetIndexer()).List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, cached, 1)
	require.NoError(t, jobs.Delete(t.Context(), job.Name, metav1.DeleteOptions{}))
	require.Equal(t, "watched", <-gone)
}

func TestKubectlGetShowsTheColumns(t *testing.T) {
	t.Parallel()
	client, namespace := ownNamespace(t)
	create(t, client.HTCJobs(namespace), "shown")
	plain, err := kubernetes.NewForConfig(kubeConfig(t))
	require.NoError(t, err)

	raw, err := plain.RESTClient().Get().
		AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "namespaces", namespace, v1alpha1.Resource).
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
	require.Equal(t, []string{"Schedd", "Held", "Checked"}, wide)

	resources, err := plain.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	require.NoError(t, err)
	require.Equal(t, []string{"htcj"}, resources.APIResources[0].ShortNames)
	require.Equal(t, []string{"all"}, resources.APIResources[0].Categories)
}

func create(t *testing.T, jobs v1alpha1.Interface, name string) *v1alpha1.HTCJob {
	t.Helper()
	job, err := jobs.Create(t.Context(), &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.HTCJobSpec{Script: v1alpha1.Script{Image: "centos", Command: "bash", Source: "exit 0\n"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return job
}

func jobsInOwnNamespace(t *testing.T) v1alpha1.Interface {
	t.Helper()
	client, namespace := ownNamespace(t)
	return client.HTCJobs(namespace)
}
