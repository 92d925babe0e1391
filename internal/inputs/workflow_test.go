package inputs

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestAWorkflowTakesTheOutputOfAnHTCJobOfItsName(t *testing.T) {
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Name: "same", Namespace: "default"}}
	ref := v1alpha1.JobRef{Name: "same", Path: "out"}
	job.Spec.Inputs = []v1alpha1.Input{{Name: "in", JobRef: &ref}}
	get := func(string) *v1alpha1.HTCJob { return job }
	require.ErrorContains(t, Rules{}.checkJobRef(job, ref), "the jobRef names this HTCJob itself")
	require.ErrorContains(t, acyclic(job, get), "same -> same")
	flow := job.DeepCopy()
	flow.Kind = v1alpha1.WorkflowKind
	require.NoError(t, Rules{}.checkJobRef(flow, ref))
	require.NoError(t, acyclic(flow, func(string) *v1alpha1.HTCJob { return nil }))
}
