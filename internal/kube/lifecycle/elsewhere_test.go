package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestAQuotaIsForTheJobsThatAreInHTCondorAtATime(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.Spec.Script.Queue = new(int32(100_000))
	s := Situation{Job: job}
	require.Equal(t, []int{100_000, 100_000}, []int{s.Demand().Jobs, s.Demand().Left})
	job.Spec.Parallelism = new(int32(50))
	require.Equal(t, []int{50, 100_000}, []int{s.Demand().Jobs, s.Demand().Left})
	require.Equal(t, 50, DemandElsewhere(job).Jobs)

	s.Run = &ledger.Run{Procs: 100_000, Factory: 50, SpecHash: "as sent"}
	s.Counts = ledger.Counts{Active: 30, Succeeded: 99_960, Failed: 10}
	require.Equal(t, []int{50, 30}, []int{s.Demand().Jobs, s.Demand().Left})
	job.Spec.Parallelism = new(int32(10))
	require.Equal(t, 30, s.Demand().Left, "each may still run")

	job.Spec.Script.Queue, job.Spec.ItemsFrom = nil, &v1alpha1.ItemsFrom{}
	s.Run = nil
	require.Equal(t, []int{10, 10}, []int{s.Demand().Jobs, s.Demand().Left}, "how many a table has is not known yet")
	require.Equal(t, 10, DemandElsewhere(job).Left)
	job.Spec.Parallelism = nil
	require.Equal(t, 1, s.Demand().Jobs)
}

func TestAQuotaHearsOfASuccessThatSufficed(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.Spec.Script.Queue = new(int32(3))
	job.Spec.SuccessPolicy = &v1alpha1.SuccessPolicy{Rules: []v1alpha1.SuccessRule{{SucceededCount: new(int32(1))}}}
	s := Situation{
		Job: job,
		Run: &ledger.Run{
			State: ledger.Submitted, Procs: 3, SpecHash: job.SpecHash(), Stop: crosscheck.StopSuccess, Confirmed: true,
		},
		Counts:    ledger.Counts{Succeeded: 1, Failed: 2},
		Stopped:   2,
		Successes: []Successes{{All: 1}},
	}
	d := s.Demand()
	require.True(t, d.Over)
	require.True(t, d.Succeeded)
	s.Successes[0].All, s.Counts = 0, ledger.Counts{Failed: 3}
	require.False(t, s.Demand().Succeeded)
}

func TestAFactoryHasNoMoreJobsThanItsQuota(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	s := Situation{Job: job, Run: &ledger.Run{Procs: 100}, Quota: &Quota{Most: 20}}
	require.Equal(t, 20, s.Parallelism().Open)
	job.Spec.Parallelism = new(int32(50))
	require.Equal(t, 20, s.Parallelism().Open, "it was raised since")
	job.Spec.Parallelism = new(int32(10))
	require.Equal(t, 10, s.Parallelism().Open)
	s.Quota.Most, job.Spec.Parallelism, job.Spec.ItemsFrom = 1, nil, &v1alpha1.ItemsFrom{}
	require.Equal(t, 100, s.Parallelism().Open, "a table counts as one job")
}

func TestDemandElsewhere(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.Spec.Script.Queue = new(int32(3))
	fresh := DemandElsewhere(job)
	require.Equal(t, Demand{Of: job.SpecHash() + " ", Jobs: 3, Left: 3}, fresh)

	job.Status = v1alpha1.HTCJobStatus{Active: 2, Succeeded: 1, ClusterID: 7, SpecHash: "of another release"}
	require.Equal(t, Demand{Of: fresh.Of, Jobs: 3, Left: 2, Alive: true, Sent: true}, DemandElsewhere(job))

	job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "again"}
	require.Equal(t, fresh.Of, DemandElsewhere(job).Of, "what is active ends first")

	job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhaseFailed, Succeeded: 1, Failed: 2}
	require.Equal(t, Demand{Of: job.SpecHash() + " again", Jobs: 3, Left: 3}, DemandElsewhere(job), "it runs again")

	job.Status.Rerun = "again"
	job.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionFalse}}
	ended := Demand{Of: job.SpecHash() + " again", Jobs: 3, Over: true, Told: true}
	require.Equal(t, ended, DemandElsewhere(job))
	job.Status.Conditions[0].Status, ended.Settled = metav1.ConditionTrue, true
	require.Equal(t, ended, DemandElsewhere(job))
	job.Spec.Script.Source = "edited"
	require.True(t, DemandElsewhere(job).Over, "an edit alone runs nothing again")
}
