//go:build !releases

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestTheNodesOfAWorkflowAreListedAndTheirOutputIsRead(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "read", `
  sequences: {count: 2, prefix: run-}
  steps:
  - name: first
    forEach: {count: 2}
    job: {script: {image: centos, command: bash, source: "echo $jobid part $1; if [ $jobid$1 = run-11 ]; then echo oops >&2; exit 3; fi"}}
  - name: second
    job: {script: {image: centos, command: bash, source: "echo after"}}
  - name: both
    pairing: All
    job:
      script: {image: centos, command: bash, source: "echo both; echo 7 > count"}
      landing: {stdout: "logs/{{item.jobid}}.{{proc}}", files: {count: ./}}
`)
	htcd := func(args ...string) string {
		out, err := f.Lab.Run(t.Context(), "htcd", append(args, "-n", f.Namespace)...)
		require.NoError(t, err)
		return out
	}
	// A follower waits from before it is sent until its end.
	require.Equal(t, "run-0 part 1\n", htcd("logs", "read", "--step=first", "--sequence=0", "--index=1", "--follow"))
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)

	require.Len(t, strings.Split(strings.TrimSpace(htcd("nodes", "read")), "\n"), 1+7)
	require.Regexp(
		t,
		`(?m)^first +1 +1 +failed +\d+\.0 +3 `,
		htcd("nodes", "htcworkflow.htc.cern.ch/read", "--state=failed"),
	)
	require.Regexp(t, `(?m)^second +1 +0 +futile +Futile `, htcd("nodes", "read", "--state=futile"))
	require.Regexp(t, `(?m)^both +all +0 +done `, htcd("nodes", "read", "--step=both"))
	var failed struct {
		Step     string
		Sequence int
		ExitCode int
		Stderr   string
	}
	require.NoError(t, json.Unmarshal([]byte(htcd("nodes", "read", "--state=failed", "-o=json")), &failed))
	require.Equal(t, "oops", strings.TrimSpace(failed.Stderr))
	require.Equal(t, 3, failed.ExitCode)
	plugin, err := f.Lab.Run(t.Context(), "kubectl", "htcjob", "nodes", "read", "--state=failed", "-n", f.Namespace)
	require.NoError(t, err)
	require.Contains(t, plugin, "failed")

	require.Equal(t, "[first 1 1] oops\n", htcd("logs", "read", "--failed", "--stderr"))
	require.Equal(t, "run-1 part 0\n", htcd("logs", "read", "--step=first", "--sequence=1"))
	require.Equal(t, "both\n", htcd("logs", "read", "--step=both"))
	_, err = f.Lab.Run(t.Context(), "htcd", "logs", "read", "--step=second", "--sequence=1", "-n", f.Namespace)
	require.ErrorContains(t, err, "second/run-1 was never run")
	_, err = f.Lab.Run(t.Context(), "htcd", "logs", "read", "--step=third", "-n", f.Namespace)
	require.ErrorContains(t, err, `HTCWorkflow read: there is no step "third": the steps are `)
	getsOutput(f, htcd)
	require.Contains(t, htcd("graph", "read"), `"first" [label="first\n3/4 done\n1 failed", fillcolor=lightpink];`)
	f.gone(w)
}

// getsOutput fetches what the nodes of that workflow have left.
func getsOutput(f *flow, htcd func(...string) string) {
	t := f.T
	f.until("fetched", func(w *v1alpha1.HTCWorkflow) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionOutputFetched)
	})
	listed := htcd("get-output", "read", "--list", "--step=first", "--sequence=1")
	require.Regexp(t, `^NODE +SIZE +FILE\nfirst/run-1/0 `, listed)
	require.Regexp(t, `(?m)^first/run-1/1 +5  _condor_stderr$`, listed)
	require.NotContains(t, listed, "run-0")
	plugin, err := f.Lab.Run(
		t.Context(),
		"kubectl",
		"htcjob",
		"get-output",
		"read",
		"--list",
		"--step=both",
		"-n",
		f.Namespace,
	)
	require.NoError(t, err)
	require.Contains(t, plugin, "both/all ")

	dir := t.TempDir()
	htcd("get-output", "htcworkflow/read", dir, "--step=first")
	htcd("get-output", "read", dir)
	for file, text := range map[string]string{
		"first/run-0/0/stdout": "run-0 part 0\n", "first/run-1/1/stderr": "oops\n", "second/run-0/stdout": "after\n", "logs/all.0": "both\n",
		"count": "7\n",
	} {
		read, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, text, string(read), file)
	}
	require.NoDirExists(t, filepath.Join(dir, "second", "run-1"), "it never ran")
	_, err = f.Lab.Run(t.Context(), "htcd", "get-output", "read", dir, "--step=third", "-n", f.Namespace)
	require.ErrorContains(t, err, `HTCWorkflow read has no step "third"`)
	_, err = f.Lab.Run(t.Context(), "htcd", "get-output", "read", dir, "--proc=1", "-n", f.Namespace)
	require.Error(t, err)
}
