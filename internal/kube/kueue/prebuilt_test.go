package kueue

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// came returns an HTCJob that asks for ten cores and the Workload, for n jobs of some cores, with which it has come.
func came(n int, cores string, change ...func(*workload)) (*v1alpha1.HTCJob, *workload) {
	job := &v1alpha1.HTCJob{}
	job.Name, job.UID, job.Labels = "j", "u", map[string]string{QueueLabel: "team"}
	job.Annotations = map[string]string{prebuiltKey: "w"}
	job.Spec.Script.Queue = new(int32(10))
	w := of10(change...)
	w.OwnerReferences = owners(job)
	set := &w.Spec.PodSets[0]
	set.Count = n
	set.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)},
	}}}
	return job, w
}

func TestAnHTCJobThatHasComeWithItsWorkloadHasNoOther(t *testing.T) {
	job, _ := came(10, "1")
	require.Equal(t, "w", nameOf(job, lifecycle.Demand{Of: "a"}))
	require.Equal(t, "w", nameOf(job, lifecycle.Demand{Of: "b"}))
	job.Annotations, job.Labels[prebuiltKey] = nil, "of-0.17"
	require.Equal(t, "of-0.17", nameOf(job, lifecycle.Demand{}))
}

func TestVerdictOfPrebuilt(t *testing.T) {
	is := func(n int, cores string, change ...func(*workload)) string {
		job, w := came(n, cores, change...)
		q := verdictOfPrebuilt(w, job)
		require.Equal(t, q.Waits, q.Stops)
		require.Equal(t, q.Waits, q.Message != "")
		return q.Message
	}
	require.Empty(t, is(10, "1", given...))
	require.Empty(t, is(11, "2", given...))
	require.Equal(t, "it waits in Kueue's queue team", is(10, "1"))
	require.Contains(t, is(9, "1", given...), "is for fewer jobs, or smaller ones")
	require.Contains(t, is(10, "500m", given...), "is for fewer jobs, or smaller ones")
	require.Contains(t, is(10, "1", append(given[:2:2], of(finished, "Succeeded"))...), "its Workload w has finished")
	job, w := came(4, "1", given...)
	job.Spec.Parallelism = new(int32(6))
	require.False(t, verdictOfPrebuilt(w, job).Waits, "four are sent at a time")
	job, w = came(10, "1", given...)
	w.OwnerReferences[0].UID = "another"
	require.Contains(t, verdictOfPrebuilt(w, job).Message, "about to take over the Workload w")
	w.OwnerReferences, w.Spec.PodSets = owners(job), nil
	require.Contains(t, verdictOfPrebuilt(w, job).Message, "is for fewer jobs")
}

func TestMultiKueueHearsOfAnEndOnceAllIsTold(t *testing.T) {
	for what, c := range map[string]struct {
		w         *workload
		is        lifecycle.Demand
		may, over bool
	}{
		"what runs is not over":                  {of10(given...), lifecycle.Demand{Alive: true}, true, false},
		"an end that the status does not tell":   {of10(given...), lifecycle.Demand{Over: true}, false, true},
		"output that is not here":                {of10(given...), lifecycle.Demand{Over: true, Told: true}, true, false},
		"output that is here":                    {of10(given...), lifecycle.Demand{Over: true, Told: true, Settled: true}, true, true},
		"an end is not sent again when evicted":  {of10(taken...), lifecycle.Demand{Over: true, Told: true}, true, true},
		"nor is it evicted before it is told of": {of10(taken...), lifecycle.Demand{Over: true}, false, true},
	} {
		t.Run(what, func(t *testing.T) {
			next, may := heard(c.w, c.is)
			require.Equal(t, []bool{c.may, c.over}, []bool{may, next.Over})
		})
	}
}
