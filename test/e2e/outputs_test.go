package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/test/trial"
)

func outputs(paths ...string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		for _, path := range paths {
			job.Spec.Outputs = append(job.Spec.Outputs, v1alpha1.Output{Path: path})
		}
	}
}

func TestOutputsBringBackWhatTheyNameAndNothingElse(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("some", `mkdir -p result/more plots/x other
echo "$1" > result/a.root; echo b > 'result/b,c.root'; echo txt > result/log.txt; echo no > result/more/no.root
echo p > plots/x/p.png; echo ' ' > "plots/ odd
name "; ln -s ../result/a.root plots/link; ln -s x plots/dir; echo no > other/no; echo no > no.root
echo "I am $1"
`, trial.Queue(2), outputs("result/*.root", "plots"))
	job := b.Fetched("some")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	for proc, number := range []string{"0\n", "1\n"} {
		require.Equal(t, number, b.File(job, proc, "result/a.root"))
		require.Equal(t, "b\n", b.File(job, proc, "result/b,c.root"))
		require.Equal(t, number, b.File(job, proc, "plots/link"))
		require.ElementsMatch(
			t,
			[]string{
				output.Stdout,
				output.Stderr,
				"result/a.root",
				"result/b,c.root",
				"plots/x/p.png",
				"plots/ odd\nname ",
				"plots/link",
			},
			b.Files(job, proc),
		)
		require.Equal(t, "I am "+number, b.Output(job, proc))
	}
	left(b, job)
}

func TestAMissingOutputFailsTheJob(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	const source = "echo out; mkdir -p result; [ $1 = 0 ] || touch result/a.root; touch log\n"
	b.Script("lacking", source, trial.Queue(2), outputs("log", "result/*.root"))
	b.Script("code", source+"exit 3\n", outputs("log", "result/*.root"))
	b.Script("again", "if "+firstStart+"; then exit 0; fi; touch a\n", outputs("a"), retries(1))
	b.Script("never", "touch b; exit 5\n", outputs("a"), retries(1), codes(5))

	job := b.Fetched("lacking")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.EqualValues(t, []int32{1, 1}, []int32{job.Status.Succeeded, job.Status.Failed})
	failed := b.Condition(job, v1alpha1.ConditionFailed)
	require.Equal(t, "OutputMissing", failed.Reason)
	require.Contains(t, failed.Message, "the script succeeded, but left no result/*.root, which spec.outputs names")
	require.Len(t, job.Status.Failures, 1)
	failure := job.Status.Failures[0]
	require.Equal(t, job.Status.JobID[0], failure.JobID)
	require.Equal(t, "OutputMissing", failure.Reason)
	require.Nil(t, failure.ExitCode)
	require.Contains(
		t,
		failure.Stderr,
		"htcd: missing in the script's directory, and named in spec.outputs: result/*.root",
	)
	require.ElementsMatch(
		t,
		[]string{output.Stdout, output.Stderr, "log"},
		b.Files(job, 0),
		"what there is, is brought back",
	)
	require.Equal(t, "out\n", b.Output(job, 0))
	left(b, job)

	job = b.Fetched("code")
	require.EqualValues(t, 3, *job.Status.Failures[0].ExitCode, "the script's own failure says more")
	require.Empty(t, job.Status.Failures[0].Stderr)

	require.Equal(
		t,
		v1alpha1.PhaseSucceeded,
		b.Fetched("again").Status.Phase,
		"it counts as a failure, and is tried again",
	)
	job = b.Fetched("never")
	require.Equal(t, "OutputMissing", job.Status.Failures[0].Reason)
	require.ElementsMatch(t, []string{output.Stdout, output.Stderr}, b.Files(job, 0))
}

// A job that is killed with its wrapper has failed; HTCondor does not hold it, although it brings nothing.
func TestAKilledJobWithOutputsEnds(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	written := "written-" + b.Namespace
	b.Script("killed", "echo out; touch result.root "+written+"; sleep 600\n", outputs("result.root"))
	require.NoError(t, syscall.Kill(wrapper(b, written), syscall.SIGKILL))
	job := b.Fetched("killed")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, "Signalled", job.Status.Failures[0].Reason)
	require.ElementsMatch(t, []string{output.Stdout, output.Stderr}, b.Files(job, 0))
	left(b, job)
}

// What an earlier execution left at the schedd is not mixed with the output of the last.
func TestOutputOfAnEarlierTryIsDropped(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script(
		"tries",
		"mkdir r; if "+firstStart+"; then touch r/first; exit 4; fi; touch r/second\n",
		outputs("r"),
		retries(1),
	)
	job := b.Fetched("tries")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.ElementsMatch(t, []string{output.Stdout, output.Stderr, "r/second"}, b.Files(job, 0))
}
