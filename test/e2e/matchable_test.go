package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/matching"
	"htc.cern.ch/htcd/test/trial"
)

func TestAJobThatWaitsForAMinuteSaysWhy(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	asks := func(r v1alpha1.Resources) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.Spec.Resources = &r }
	}
	gpus := asks(v1alpha1.Resources{GPUs: new(resource.MustParse("2"))})
	b.Script("picky", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.Requirements = "HasUnicorn =?= true" })
	b.Script("huge", "exit 0\n", asks(v1alpha1.Resources{Memory: new(resource.MustParse("500Gi"))}))
	b.Script("holder", "sleep 600\n", gpus) // all that there are
	b.Phase("holder", v1alpha1.PhaseRunning)
	b.Script("waits", "exit 0\n", gpus)
	b.Eventually(func() bool {
		return len(
			b.Condor(
				"condor_q",
				trial.Tagged(b.Get("waits"))+" && JobStatus == 1 && time() - EnteredCurrentStatus > 60",
			),
		) == 1
	}, func() string { return b.Kubectl("describe", "htcjob", "waits") })

	is := func(name, reason string) metav1.Condition {
		var c *metav1.Condition
		b.Until(name, reason, func(job *v1alpha1.HTCJob) bool {
			c = meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionMatchable)
			return c != nil && c.Reason == reason
		})
		return *c
	}
	huge := is("huge", matching.ReasonNoMachine)
	require.Regexp(t, `^0 of \d+ machines? (has|have) 500 GiB \(largest 32 GiB\)$`, huge.Message)
	require.Equal(t, huge.Message, b.Get("huge").Status.Message)
	require.Contains(t, b.Kubectl("get", "events", "--field-selector", "involvedObject.name=huge"), huge.Message)
	busy := is("waits", matching.ReasonAllBusy)
	require.Equal(t, metav1.ConditionTrue, busy.Status)
	require.Contains(t, busy.Message, "machines match, all busy: 1 of ")
	require.Contains(t, is("picky", matching.ReasonNoneMeets).Message, "HasUnicorn")

	b.Kubectl("delete", "htcjob", "holder")
	job := b.Ended("waits")
	require.Nil(t, meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionMatchable))
}
