//go:build !releases

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestScriptsFollowHTCWorkflowsByTheSameCommands(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	const workflow = "apiVersion: htc.cern.ch/v1alpha1\nkind: HTCWorkflow\nmetadata: {name: %s}\nspec:\n%s"
	dir := t.TempDir()
	scan := fileIn(t, dir, "scan.yaml", fmt.Sprintf(workflow, "scan", `  sequences: {count: 2}
  steps:
  - name: first
    job: {script: {image: centos, command: bash, source: "echo $jobid; if [ $jobid = job_1 ]; then echo oops >&2; exit 7; fi"}}
  - name: second
    job: {script: {image: centos, command: bash, source: "echo after"}}
`))
	require.Equal(t, "htcworkflow.htc.cern.ch/scan submitted (dry run)\n", c.ends(0, "submit", scan, "--dry-run"))
	c.ends(1, "status", "scan")
	out, err := c.Lab.Run(t.Context(), "htcd", "submit", scan, "--watch", "-n", c.Namespace)
	require.ErrorContains(t, err, "exit status 7")
	require.ErrorContains(t, err, "wf/scan: step first: 1 of 2 nodes done, 1 failed")
	require.ErrorContains(t, err, "wf/scan: Failed: ")
	require.Equal(t, "htcworkflow.htc.cern.ch/scan submitted\n", out)
	require.Equal(t, "failed\n", c.ends(3, "status", "scan"))
	require.Equal(t, "htcworkflow.htc.cern.ch/scan\n", c.ends(0, "list", "--failed", "-o", "name"))
	c.ends(7, "wait", "wf/scan")

	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	f := &flow{Bench: c.Bench, client: client, name: "scan"}
	f.ended()
	c.ends(2, "logs", "scan")
	require.Equal(t, "[first 0 0] job_0\n[first 1 0] job_1\n", c.ends(0, "logs", "scan", "--step", "first", "--all"))
	c.ends(0, "get-output", "scan", filepath.Join(dir, "out"))
	require.Equal(t, "htcworkflow.htc.cern.ch/scan runs again: failed\n", c.ends(0, "rerun", "scan", "--failed"))
	c.ends(7, "wait", "htcworkflow/scan")
	w, err := f.get()
	require.NoError(t, err)
	require.EqualValues(t, 2, w.Status.Attempt)
	require.Equal(t, "[first 1 0] oops\n", c.ends(0, "logs", "scan", "--failed", "--stderr"))

	look := fileIn(
		t,
		dir,
		"look.yaml",
		fmt.Sprintf(
			workflow,
			"look",
			`  steps: [{name: wait, job: {interactive: true, script: {image: centos, command: bash, source: "false"}}}]`,
		),
	)
	require.Equal(t, "look\n", c.ends(0, "submit", look, "--name-only"))
	c.ends(124, "wait", "look", "--timeout", "1s")
	c.Eventually(func() bool {
		out, err = c.Lab.Run(
			t.Context(),
			"htcd",
			"exec",
			"look",
			"-n",
			c.Namespace,
			"--step",
			"wait",
			"--",
			"echo",
			"here",
		)
		return err == nil
	}, func() string { return fmt.Sprint(out, err) })
	require.Equal(t, "here\n", out)
	f.name = "look" // whose status follows its jobs by seconds
	f.until("running", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase == v1alpha1.PhaseRunning })
	require.Equal(t, "running\n", c.ends(5, "status", "look"))

	c.ends(0, "submit", fileIn(t, dir, "job.yaml", script("look", "exit 0", "  htcopts: requirements = false\n")))
	_, err = c.Lab.Run(t.Context(), "htcd", "cancel", "look", "-n", c.Namespace)
	require.ErrorContains(
		t,
		err,
		`exit status 2: htcd: "look" is the name of an HTCJob and of an HTCWorkflow: write job/look or wf/look`,
	)
	completed, err := c.Lab.Run(t.Context(), "htcd", "__complete", "cancel", "-n", c.Namespace, "")
	require.NoError(t, err)
	require.Contains(t, completed, "job/look\tpending\n")
	require.Contains(t, completed, "wf/look\trunning\n")
	require.Equal(t, "htcworkflow.htc.cern.ch/look is cancelled\n", c.ends(0, "cancel", "wf/look"))
	f.until("suspended", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase == v1alpha1.PhaseSuspended })
	require.Equal(t, "suspended\n", c.ends(6, "status", "wf/look"))
	require.Equal(
		t,
		"htcjob.htc.cern.ch/look deleted\nhtcworkflow.htc.cern.ch/look deleted\n",
		c.ends(0, "delete", "job/look", "wf/look"),
	)
	require.Equal(t, "htcworkflow.htc.cern.ch/scan deleted\n", c.ends(0, "delete", "--finished"))
}
