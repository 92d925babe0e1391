package kueue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

func TestEachThingThatIsRunHasAWorkloadOfItsOwn(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.UID, job.Labels = "u", map[string]string{QueueLabel: "team"}
	names := map[string]bool{}
	add := func(d lifecycle.Demand) {
		name := nameOf(job, d)
		require.Empty(t, validation.IsDNS1123Subdomain(name), name)
		require.LessOrEqual(t, len(name), validation.DNS1035LabelMaxLength)
		require.Equal(t, name, nameOf(job, d))
		names[name] = true
	}
	for _, job.Name = range []string{"a", "a.b-c", strings.Repeat("a", 44) + ".b", strings.Repeat("a.", 126) + "a", strings.Repeat("b", 253)} {
		add(lifecycle.Demand{Of: "spec "})
	}
	require.Len(t, names, 5)
	add(lifecycle.Demand{Of: "other "})
	add(lifecycle.Demand{Of: "spec again"})
	job.Labels[QueueLabel] = "another"
	add(lifecycle.Demand{Of: "spec "})
	job.UID = "v"
	add(lifecycle.Demand{Of: "spec "})
	require.Len(t, names, 9)
	job.Kind = v1alpha1.WorkflowKind
	add(lifecycle.Demand{Of: "spec "})
	require.Len(t, names, 10)
	require.Equal(t, v1alpha1.WorkflowKind, owners(job)[0].Kind)
	job.Annotations = map[string]string{prebuiltKey: "another"}
	require.Empty(t, prebuilt(job), "nothing brings an HTCWorkflow from another cluster")
}

func TestRequests(t *testing.T) {
	quantity := func(q string) *resource.Quantity { return new(resource.MustParse(q)) }
	for what, c := range map[string]struct {
		resources *v1alpha1.Resources
		nodes     *int32
		want      corev1.ResourceList
	}{
		"a core":              {nil, nil, corev1.ResourceList{"cpu": *quantity("1")}},
		"whole cores":         {&v1alpha1.Resources{CPUs: quantity("1500m")}, nil, corev1.ResourceList{"cpu": *quantity("2")}},
		"what the spec has":   {&v1alpha1.Resources{Memory: quantity("2Gi"), GPUs: quantity("1")}, nil, corev1.ResourceList{"cpu": *quantity("1"), "memory": *quantity("2Gi"), gpus: *quantity("1")}},
		"no GPUs are none":    {&v1alpha1.Resources{GPUs: quantity("0")}, nil, corev1.ResourceList{"cpu": *quantity("1")}},
		"disk does not count": {&v1alpha1.Resources{Disk: quantity("1Gi")}, nil, corev1.ResourceList{"cpu": *quantity("1")}},
		"no less than a core": {&v1alpha1.Resources{CPUs: quantity("100m")}, nil, corev1.ResourceList{"cpu": *quantity("1")}},
		"all nodes together": {
			&v1alpha1.Resources{CPUs: quantity("1500m"), Memory: quantity("2Gi"), GPUs: quantity("2")},
			new(int32(4)),
			corev1.ResourceList{"cpu": *quantity("8"), "memory": *quantity("8Gi"), gpus: *quantity("8")},
		},
		"a core of each node": {nil, new(int32(3)), corev1.ResourceList{"cpu": *quantity("3")}},
	} {
		t.Run(what, func(t *testing.T) {
			job := &v1alpha1.HTCJob{Spec: v1alpha1.HTCJobSpec{Resources: c.resources}}
			job.Spec.Nodes = c.nodes
			is := requests(job)
			require.Len(t, is, len(c.want))
			for name, want := range c.want {
				got := is[name]
				require.Zero(t, want.Cmp(got), "%s: %s", name, got.String())
			}
		})
	}
}
