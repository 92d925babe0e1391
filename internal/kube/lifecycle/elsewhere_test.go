package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestDemandElsewhere(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.Spec.Script.Queue = new(int32(3))
	fresh := DemandElsewhere(job)
	require.Equal(t, Demand{Of: job.SpecHash() + " ", Jobs: 3}, fresh)

	job.Status = v1alpha1.HTCJobStatus{Active: 2, Succeeded: 1, ClusterID: 7, SpecHash: "of another release"}
	require.Equal(t, Demand{Of: fresh.Of, Jobs: 3, Alive: true, Sent: true, Ended: 1}, DemandElsewhere(job))

	job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "again"}
	require.Equal(t, fresh.Of, DemandElsewhere(job).Of, "what is active ends first")

	job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhaseFailed, Succeeded: 1, Failed: 2}
	require.Equal(t, Demand{Of: job.SpecHash() + " again", Jobs: 3}, DemandElsewhere(job), "it runs again")

	job.Status.Rerun = "again"
	job.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionFalse}}
	ended := Demand{Of: job.SpecHash() + " again", Jobs: 3, Ended: 3, Over: true, Told: true}
	require.Equal(t, ended, DemandElsewhere(job))
	job.Status.Conditions[0].Status, ended.Settled = metav1.ConditionTrue, true
	require.Equal(t, ended, DemandElsewhere(job))
	job.Spec.Script.Source = "edited"
	require.True(t, DemandElsewhere(job).Over, "an edit alone runs nothing again")
}
