//go:build !releases

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestAnHTCJobEndsBeforeAllItsJobsHave(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("fails", "test $1 -eq 0 || sleep 600\nexit 3\n", trial.Queue(3), func(job *v1alpha1.HTCJob) {
		job.Spec.MaxFailures, job.Spec.OnMaxFailures = new(intstr.FromString("1%")), v1alpha1.RemoveAll
	})
	b.Script("enough", "test $1 -eq 0 || sleep 600\n", trial.Queue(3), func(job *v1alpha1.HTCJob) {
		job.Spec.SuccessPolicy = &v1alpha1.SuccessPolicy{Rules: []v1alpha1.SuccessRule{{SucceededIndexes: "0"}}}
	})
	failed := b.Ended("fails")
	require.Equal(t, v1alpha1.PhaseFailed, failed.Status.Phase)
	require.Equal(t, "MaxFailuresReached", b.Condition(failed, v1alpha1.ConditionFailed).Reason)
	require.Equal(t, []int32{0, 1, 2}, []int32{failed.Status.Succeeded, failed.Status.Failed, failed.Status.Stopped})
	enough := b.Ended("enough")
	require.Equal(t, v1alpha1.PhaseSucceeded, enough.Status.Phase)
	require.Equal(t, []int32{1, 0, 2}, []int32{enough.Status.Succeeded, enough.Status.Failed, enough.Status.Stopped})
}
