package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestWorkflowsEndAsTheirSequencesAndStepsSay(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	completing := flowIn(b, "completing", `
  sequences: {count: 5, completions: 2}
  steps:
  - name: model
    pairing: All
    job: {script: {image: centos, command: sh, source: "echo model > model"}}
  - name: fit
    pull: [{from: model, path: model}]
    job: {script: {image: centos, command: sh, source: "cat model; test $jobid != job_0"}}
  - name: plot
    pairing: All
    job:
      script:
        image: centos
        command: sh
        workdir: /usr/share
        writableRoot: true
        source: "pwd; echo x > /usr/share/made && cat made; mkdir $outpath/kept; echo y > $outpath/file"
`)
	returning := flowIn(b, "returning", `
  sequences: {count: 2}
  steps:
  - name: a
    abortExitCodes: [9]
    abortReturn: 0
    job: {script: {image: centos, command: sh, source: "test $jobid = job_1 || exit 9; sleep 600"}}
  finally:
    name: report
    job: {script: {image: centos, command: sh, source: "echo $HTC_OUTCOME"}}
`)
	w := completing.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, "%+v", w.Status)
	require.Equal(t, v1alpha1.SequenceCounts{Total: 3, Succeeded: 2, Failed: 1}, w.Status.Sequences)
	require.Equal(t, "model\n", completing.output(w, "fit/job_2", "_condor_stdout"))
	require.Equal(t, "/usr/share\nx\n", completing.output(w, "plot/all", "_condor_stdout"))
	require.Equal(t, "y\n", completing.output(w, "plot/all", "file"))
	require.Equal(
		t,
		"htcd: directories are brought back only if spec.outputs names them, and these are dropped: kept\n",
		completing.output(w, "plot/all", "_condor_stderr"),
	)

	w = returning.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, "%+v", w.Status)
	require.Zero(t, *w.Status.ExitCode)
	require.Equal(t, v1alpha1.SequenceCounts{Total: 2, Failed: 2}, w.Status.Sequences)
	require.Equal(t, "Succeeded\n", returning.output(w, "report/all", "_condor_stdout"))
}

func TestACompleteWorkflowHasItsOutputAndResultIfItWaitsForThem(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "answers", `
  completeAfterOutput: true
  result: stdout
  sequences: {count: 2}
  steps:
  - name: ask
    job: {script: {image: centos, command: sh, source: "echo $jobid > asked"}}
  - name: answer
    pull: [{from: ask, path: asked}]
    job: {script: {image: centos, command: sh, source: "cat asked; echo 42 > answer"}}
`)
	f.Kubectl("wait", "--for=condition=Complete", "htcworkflow/answers", "--timeout="+(4*trial.Patience).String())
	w, err := f.get()
	require.NoError(t, err)
	require.Equal(t, "job_0\njob_1", *w.Status.Result)
	require.Equal(t, "4 nodes are done", w.Status.Message)
	require.Zero(t, *w.Status.ExitCode)
	require.Equal(t, "job_1\n", f.output(w, "answer/job_1", "_condor_stdout"))

	f.Kubectl("patch", "htcworkflow", "answers", "--type=merge", "-p", `{"spec":{"result":"answer"}}`)
	w = f.until("read again", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.ObservedGeneration == w.Generation })
	require.Equal(t, "42\n42", *w.Status.Result)
	require.EqualValues(t, 1, w.Status.Attempt, "nothing is sent")
}
