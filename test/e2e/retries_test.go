package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func codes(codes ...int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.SuccessExitCodes = codes }
}

func retries(n int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Retries = &n }
}

func TestListedCodesAreSuccessAndNoOther(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script(
		"codes",
		"case $1 in 0) exit 3 ;; 1) exit 5 ;; 2) exit 0 ;; *) exit 33 ;; esac\n",
		trial.Queue(4),
		codes(3, 5),
	)
	job := b.Ended("codes")
	require.EqualValues(t, []int32{0, 2, 2}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
	require.Equal(t, "exit code 0", job.Status.Failures[0].Message)
	require.Equal(t, "exit code 33", job.Status.Failures[1].Message)

	b.Script("good", "exit 5\n", codes(3, 5))
	require.Equal(t, v1alpha1.PhaseSucceeded, b.Ended("good").Status.Phase)
}

// The job's ad counts the starts before this one.
const firstStart = "! grep -q '^NumJobStarts = [1-9]' .job.ad"

func TestAFailedJobIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("second", "if "+firstStart+"; then exit 4; fi\n", retries(2))
	b.Script("never", "echo never > left; exit $(($1 * 4))\n", trial.Queue(2), retries(1), codes(3))
	b.Script("enough", "echo enough > left; exit 5\n", retries(3), codes(3, 5))
	b.Script(
		"finds",
		"if "+firstStart+"; then echo so far >left; exit 4; fi; test \"$(cat left)\" = 'so far'\n",
		retries(1),
	)
	b.Script(
		"signal",
		"kill -SEGV $$\n",
		retries(2),
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "retry_until = ExitCode > 128\n" },
	)
	for name, want := range map[string]struct {
		phase  v1alpha1.Phase
		starts string
	}{
		"second": {v1alpha1.PhaseSucceeded, "2"}, "never": {v1alpha1.PhaseFailed, "2"}, "enough": {v1alpha1.PhaseSucceeded, "1"},
		"finds": {v1alpha1.PhaseSucceeded, "2"}, "signal": {v1alpha1.PhaseFailed, "1"},
	} {
		job := b.Ended(name)
		require.Equal(t, want.phase, job.Status.Phase, name)
		starts := b.Ads(trial.Tagged(job), "NumJobStarts")
		require.Contains(t, starts, job.Status.JobID[0]+" "+want.starts, name)
		if name == "never" || name == "enough" { // whatever code it ends with
			require.Equal(t, name+"\n", b.File(b.Fetched(name), 0, "left"))
		}
	}
	signal := b.Ended("signal")
	require.EqualValues(t, 139, *signal.Status.Failures[0].ExitCode)
	require.Contains(t, b.Ads(trial.Tagged(signal), "ExitBySignal"), signal.Status.JobID[0]+" false")
}
