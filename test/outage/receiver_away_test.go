package outage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Only the cross-check can find out how these end, because the queue is not asked in between.
func TestWithoutAReceiverTheCrossCheckFindsTheEndsOfHTCJobs(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 10s", "--refresh=1h", "--callback-deadline=5s")
	o.do(o.part("receiver-net").Stop)
	o.Create("good", "exit 0\n")
	o.Create("bad", "exit 7\n")
	o.Create("lacking", "touch there\n", func(job *v1alpha1.HTCJob) {
		job.Spec.Outputs = []v1alpha1.Output{{Path: "there"}, {Path: "plots/*.png"}}
	})

	for name, phase := range map[string]v1alpha1.Phase{
		"good": v1alpha1.PhaseSucceeded, "bad": v1alpha1.PhaseFailed, "lacking": v1alpha1.PhaseFailed,
	} {
		job := o.Ended(name)
		require.Equal(t, phase, job.Status.Phase)
		require.Equal(t, "crosscheck", o.Source(job))
		o.once(job)
	}
	require.EqualValues(t, 7, *o.Get("bad").Status.Failures[0].ExitCode)
	failure := o.Get("lacking").Status.Failures[0]
	require.Equal(t, "OutputMissing", failure.Reason)
	require.Contains(t, failure.Message, "plots/*.png")
	o.gone()
}
